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

// These limits bound what the caller does not bound, so that nothing hangs.
const (
	callLimit        = 14 * time.Second      // one call, except RequestEdit, which waits for other pages
	startLimit       = 9 * time.Second       // until it is known whether this page edits
	takeLimit        = 8 * time.Second       // until a page edits that may take the lock
	writeLimit       = 30 * time.Second      // a snapshot and its commit
	answerLimit      = 5 * time.Second       // a lock or a store that is asked and need not wait
	vetoLimit        = 3 * time.Second       // of Config.OnHandover
	handoverLimit    = 10 * time.Second      // saving for a handover; taking a lock that was handed over
	offerLimit       = 9 * time.Second       // relying on an offer, counted from the question
	draftLimit       = 2 * time.Second       // the time that a call keeps for storing a draft at its end,
	releaseLimit     = time.Second           // and the time for releasing the lock after that
	readsAtOnce      = 2                     // calls that read; the others wait, so that saves get their turn
	inspectLimit     = 40 * time.Millisecond // asking which page edits, before the page is notified
	lateInspectLimit = time.Second           // asking that when nobody waits for the answer to be quick
	inspectRetries   = 5                     // how often to ask again
	noticeLimit      = 60 * time.Millisecond // collecting the details of autosave:readonly
	graceLimit       = time.Hour             // the longest grace that another page may ask for
	standbyLimit     = 10 * 365 * 24 * time.Hour
)

// Locks is the part of a [lock.Manager] that AutoSave uses.
type Locks interface {
	Acquire(ctx context.Context, opts lock.AcquireOptions) (lock.Lease, error)
	Inspect(ctx context.Context) ([]lock.Holder, []lock.Waiter, error)
	OwnerID() string
}

var _ Locks = (*lock.Manager)(nil)

// Config describes a [Saver].
type Config struct {
	// Snapshot returns the present content to save. It is called when a write begins and when the lock was lost,
	// possibly before an earlier call has returned. Its result is not used after ctx has ended, and must not change
	// before.
	Snapshot func(ctx context.Context) (Content, error)
	Store    Store
	Storage  Storage // the storage that State reports if Store is no RemoteStore; default: StorageOPFS
	Locks    Locks
	Channel  Channel    // nil: no page can be asked to hand over
	Clock    lock.Clock // default: lock.SystemClock

	// Listener, if set, receives every event in order, on a goroutine of its own.
	Listener func(Event)
	// OnHandover, if set, is asked before the lock is handed to the named owner. An error refuses; the asking page
	// receives its text. After three seconds ctx ends, and no answer means consent.
	OnHandover func(ctx context.Context, from string) error

	// Drafts, if set, stores the content that this page could not save. It also contains the drafts of earlier pages.
	Drafts Drafts
	// Merge, if set, is called if a draft and the saved content have both changed since their base. The content that it
	// returns is saved. nil or an error leaves the decision to the user: EventConflict. ctx ends after five seconds.
	Merge func(ctx context.Context, sides Conflict) (Content, error)

	// Again means that the page had a Saver before. Then the page is read-only if the lock refuses its options, for example because a lease
	// around it has ended. Without Again, New fails.
	Again bool
	// Dirty means that the page already has unsaved text.
	Dirty bool
	// Shown and Lineage, if set, describe the text that the page already shows. Shown is the generation on which it was
	// typed, and Lineage the id of its drafts. With them a page continues after the program of its previous Saver has
	// died: it does not load that generation a second time.
	Shown, Lineage string

	Disabled bool          // nothing is ever written
	Debounce time.Duration // the pause in typing before a save; default 500 ms
	Idle     time.Duration // the maximum time that a change waits while the user types; default 2 s
	Limits   Limits
	// Lock contains the options of every acquisition; the Saver sets those about waiting. Lock.Path is the document:
	// Store, Channel and Drafts belong to it, see [Folder].
	Lock lock.AcquireOptions
	// NoStandby keeps a page read-only until it asks to edit. Otherwise it waits in the queue and becomes the editor
	// when its turn comes.
	NoStandby bool
	Retry     lock.Backoff // between attempts to save; MaxRetries has no effect
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
