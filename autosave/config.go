package autosave

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// Defaults of [Config].
const (
	DefaultDebounce = 500 * time.Millisecond
	DefaultIdle     = 2 * time.Second
	DefaultGrace    = 5 * time.Second
)

// What is not bounded by the caller is bounded here: nothing hangs.
const (
	callLimit     = 14 * time.Second      // any call, but for the time in which it waits for a person
	startLimit    = 9 * time.Second       // until it is known whether this page edits
	takeLimit     = 8 * time.Second       // until a page edits that may take the lock
	writeLimit    = 30 * time.Second      // a snapshot and its commit
	answerLimit   = 5 * time.Second       // a lock or a store that is asked and need not wait
	vetoLimit     = 3 * time.Second       // Config.OnHandover
	handoverLimit = 10 * time.Second      // saving for a handover; taking what was handed over
	draftLimit    = 2 * time.Second       // storing a draft, where a call that ends has used up its time,
	releaseLimit  = time.Second           // and giving the lock back
	readsAtOnce   = 2                     // calls that read; the others wait, so that saves have their turn
	rollCall      = 40 * time.Millisecond // asking who edits
	lateRollCall  = time.Second           // asking again,
	lateRollCalls = 5                     // so often
	noticeLimit   = 60 * time.Millisecond // gathering what goes with autosave:readonly
	standbyLimit  = 10 * 365 * 24 * time.Hour
)

// Locks is what AutoSave needs of a [lock.Manager].
type Locks interface {
	AcquireProjectLock(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error)
	RenewProjectLock(ctx context.Context, lease lock.Lease) (lock.Lease, error)
	Inspect(ctx context.Context) ([]lock.Holder, []lock.Waiter, error)
	OwnerID() string
}

var _ Locks = (*lock.Manager)(nil)

// Config describes a [Saver].
type Config struct {
	// Snapshot returns what is to be saved, as it is now. It is called when a write
	// begins and when the lock was lost, possibly before an earlier call has returned.
	// What it returns is not used after ctx has ended, and must not change before.
	Snapshot func(ctx context.Context) (Content, error)
	Store    Store
	Locks    Locks
	Channel  Channel    // nil: nobody can be asked to hand over
	Clock    lock.Clock // default: lock.SystemClock

	// Listener, where set, is told every event in order, on a goroutine of its own.
	Listener func(Event)
	// OnHandover, where set, is asked before the lock is handed to the owner named. An
	// error refuses, its text is told to the asker. It may take its time, but after
	// three seconds silence is consent: ctx ends.
	OnHandover func(ctx context.Context, from string) error

	// Drafts, where set, keeps what this page had and could not save, and has what pages
	// before it have left.
	Drafts Drafts
	// Merge, where set, is asked where a draft and the saved content have both changed since
	// their base. The content that it returns is saved. nil or an error leaves the decision
	// to the person: EventConflict. It has five seconds; then ctx ends.
	Merge func(ctx context.Context, sides Conflict) (Content, error)

	// Dirty says that the page has text already that nobody has saved.
	Dirty bool
	// Shown and Lineage, where set, say what the page shows already: the generation on which its text was typed, and the id of
	// its drafts. So a page goes on where the program of the Saver before this one has died: it loads that generation no
	// second time.
	Shown, Lineage string

	Disabled bool          // nothing is ever written
	Debounce time.Duration // default 500 ms: how long typing must pause before it is saved
	Idle     time.Duration // default 2 s: the longest a change waits while typing goes on
	Limits   Limits
	// Lock are the options of every acquisition; those that say how to wait are set by
	// the Saver. Lock.Path is the document: Store, Channel and Drafts are its own, see [Folder].
	Lock lock.AcquireOptions
	// NoStandby leaves a read-only page so until it asks to edit. Otherwise it waits in
	// the queue and becomes the editor when its turn comes.
	NoStandby bool
	Retry     lock.Backoff // between attempts to save; MaxRetries means nothing here
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = lock.SystemClock{}
	}
	c.Debounce = cmp.Or(c.Debounce, DefaultDebounce)
	c.Idle = cmp.Or(c.Idle, max(DefaultIdle, c.Debounce))
	c.Limits = c.Limits.withDefaults()
	return c
}

func (c Config) check() *Error {
	invalid := func(what string) *Error { return &Error{Code: CodeInvalidArgument, Detail: what} }
	switch {
	case c.Debounce < 0:
		return invalid("debounceMs must not be negative")
	case c.Idle < c.Debounce:
		return invalid("idleMs must not be shorter than debounceMs")
	case c.Limits.MaxGenerations < 0:
		return invalid("maxGenerations must be positive")
	case c.Limits.MaxBytes < 0:
		return invalid("maxBytes must be positive")
	case c.Limits.Keep != KeepSpread && c.Limits.Keep != KeepLatest:
		return invalid(`keep must be "spread" or "latest"`)
	}
	if err := checkDocument(c.Lock); err != nil {
		return err
	}
	switch {
	case c.Disabled:
		return nil
	case c.Snapshot == nil:
		return invalid("snapshot must be a function")
	case c.Store == nil || c.Locks == nil:
		return invalid("there must be a store and a lock")
	}
	return nil
}
