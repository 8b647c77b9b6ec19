package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// editor is a page with AutoSave: it appends words to its text, saves, asks for its turn, restores and pins former texts,
// decides about drafts, sleeps and ends. It also
// does the page's part of AutoSave: it numbers its snapshots and journals them.
type editor struct {
	run        *run
	tab        *tab
	dice       *dice
	m          *lock.Manager
	remote     bool
	domain     string
	pageDrafts *autosavetest.PageDrafts
	channel    autosave.Channel
	saver      *autosave.Saver
	opened     atomic.Pointer[autosave.Saver] // the same, when open returns

	mu       sync.Mutex
	text     string
	id, base string // of the lineage
	other    string // the generation that a restore has made
	lineages int
	loads    int   // contents that it was given
	number   int64 // of changes
	stored   int64 // the change that a commit or a draft contains
	lengths  map[int64]int
	editable bool
	belief   *belief // in the last lease seen
}

// numbered returns the text as a snapshot of the page.
func (e *editor) numbered() autosave.Draft {
	return autosave.Draft{ID: e.id, Number: e.number, OwnerID: e.tab.name, OwnerName: e.tab.name, At: e.tab.at.clock.now().Wall, Base: e.base}
}

// renew begins another lineage, based on a generation.
func (e *editor) renew(base string) {
	e.lineages++
	e.id, e.base, e.stored = fmt.Sprintf("%s-%d", e.tab.name, e.lineages), base, e.number
	e.lengths = map[int64]int{e.number: len(e.text)}
}

func (e *editor) config(store autosave.Store) autosave.Config {
	c := autosave.Config{Store: store, Locks: e.m, Clock: e.tab, Channel: e.channel,
		Drafts: &drafts{e.tab, e.pageDrafts}, Listener: e.hear,
		Limits: e.run.plan.history, Debounce: e.run.plan.debounce, Idle: 4 * e.run.plan.debounce,
		Lock: lock.AcquireOptions{Path: e.run.plan.path, TTL: e.run.plan.ttl, HeartbeatInterval: e.run.plan.ttl / 3},
		Snapshot: func(context.Context) (autosave.Content, error) {
			if err := e.tab.step(); err != nil {
				return nil, err
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			return autosave.Numbered{Content: autosave.Bytes(e.text), Draft: e.id, Number: e.number}, nil
		}}
	if e.dice.chance(e.run.plan.merges) {
		c.Merge = e.merge
	}
	return c
}

// open opens AutoSave. It must be called only once.
func (e *editor) open(store autosave.Store) error {
	e.lengths = make(map[int64]int)
	e.pageDrafts.Unsaved = func() (autosave.Draft, []byte, bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.numbered(), []byte(e.text), e.number > e.stored
	}
	e.renew("")
	var err error
	e.saver, err = autosave.New(context.Background(), e.config(store))
	e.opened.Store(e.saver)
	return err
}

// edits reports whether the user may type.
func (e *editor) edits() bool {
	s := e.opened.Load()
	return s == nil || !s.ReadOnly()
}

// hear is the listener of the page.
func (e *editor) hear(event autosave.Event) {
	if e.tab.awake() != nil {
		return
	}
	e.mu.Lock()
	switch event.Type {
	case autosave.EventSaved:
		e.saved(event.Generation)
	case autosave.EventEditable:
		e.begin(event)
	case autosave.EventReadonly:
		e.editable = false
	}
	e.mu.Unlock()
}

// saved records an acknowledgement.
func (e *editor) saved(g *autosave.Generation) {
	if g.Draft == "" {
		e.other = g.ID
	}
	if g.Draft != e.id {
		return
	}
	e.stored = max(e.stored, g.Number)
	if g.Current {
		e.base = g.ID
	}
	e.pageDrafts.Saved(e.id, g.Number)
	if length, ok := e.lengths[g.Number]; ok {
		e.run.words.acknowledge(e.tab, e.domain, e.text[:length], g)
	}
}

// begin shows the text with which the editor begins.
func (e *editor) begin(event autosave.Event) {
	if event.Loaded {
		if e.number > e.stored {
			e.mu.Unlock()
			_, _ = e.pageDrafts.Seal(context.Background(), autosave.CauseLockLost)
			e.mu.Lock()
		}
		e.text = string(event.Content)
		e.loads++
		e.renew(event.Base)
	} else if e.number == e.stored {
		e.base = event.Base
	}
	e.editable = true
	lease, ok := e.m.Lease(event.LeaseID)
	if !ok || e.belief != nil && lease.ID == e.belief.lease.ID {
		return
	}
	e.run.words.begins(e.tab, e.domain, e.text, lease.Token, event.Loaded)
	locked := names(lock.AcquireOptions{Mode: lock.Exclusive, Path: e.run.plan.path}, 0)
	b := &belief{tab: e.tab, domain: e.domain, lease: lease, names: locked, remote: e.remote, recorded: e.remote || e.run.plan.path == nil, edits: e.edits}
	e.belief = b
	e.tab.w.note(e.tab.name, "edits, with token %d, from %q", lease.Token, clipped(e.text))
	e.run.checker.granted(b)
	if e.run.plan.nests > 0 {
		page := program{run: e.run, tab: e.tab, m: e.m, domain: e.domain, remote: e.remote}
		e.run.side.Go(page.inside(b, 0).work)
	}
	e.run.side.Go(func() {
		select {
		case <-lease.Done():
		case <-e.tab.dead:
		case <-e.run.ended:
		}
		if lease.Err() != nil && e.tab.awake() == nil {
			e.tab.w.note(e.tab.name, "lost token %d: %v", lease.Token, lease.Err())
			e.run.checker.ended(b)
		} else {
			e.run.checker.releases(b)
		}
	})
}

func clipped(text string) string { return text[max(0, len(text)-60):] }

// types adds a word. The page journals it at once.
func (e *editor) types() {
	e.mu.Lock()
	if !e.editable || e.saver.ReadOnly() {
		e.mu.Unlock()
		return
	}
	word := e.run.words.next(e.tab.name)
	e.text += word
	e.number++
	e.lengths[e.number] = len(e.text)
	draft, text, belief := e.numbered(), []byte(e.text), e.belief
	e.mu.Unlock()
	if belief != nil {
		e.run.checker.alone(belief)
	}
	e.pageDrafts.Journal(draft, text)
	e.run.words.journalled(word)
	e.saver.MarkDirty()
}

// work types and does what users do with a page, until the run calms down or the tab is gone.
func (e *editor) work() {
	for e.tab.step() == nil && !e.run.calm() {
		switch n := e.dice.n(110); {
		case n < 80:
			e.types()
		case n < 87:
			e.call("flushing", time.Minute, func(ctx context.Context) error { _, err := e.saver.FlushNow(ctx); return err })
		case n < 93:
			options := autosave.EditOptions{Force: e.dice.chance(0.5), Grace: pick(e.dice, time.Second, 5*time.Second)}
			e.call("asking for the turn", 2*time.Minute, func(ctx context.Context) error { return e.saver.RequestEdit(ctx, options) })
		case n < 96:
			e.call("sleeping", time.Minute, e.saver.Suspend)
			e.idle(e.dice.between(10*time.Millisecond, time.Minute))
			e.call("waking", time.Minute, e.saver.Resume)
		case n < 97:
			e.leave()
			return
		default:
			e.choose()
		}
		e.idle(e.dice.between(time.Millisecond, 4*time.Second))
	}
}

// choose does something with the history or the drafts.
func (e *editor) choose() {
	switch {
	case !e.run.plan.chooses:
	case e.dice.chance(0.3):
		e.pin()
	case e.dice.chance(0.3):
		e.restore()
	default:
		e.decide()
	}
}

func (e *editor) idle(d time.Duration) {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-e.tab.dead:
	case <-e.run.calmed:
	}
}

// call checks that a call settles. Its ctx ends at least a minute before the limit.
func (e *editor) call(what string, limit time.Duration, f func(context.Context) error) {
	if e.tab.step() != nil {
		return
	}
	e.run.checker.call(e.tab, what, limit+slack, func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		if err := f(ctx); err != nil {
			e.tab.w.note(e.tab.name, "%s: %v", what, strings.SplitN(err.Error(), "\n", 2)[0])
		}
	})
}

// leave closes the page, and opens another one later.
func (e *editor) leave() {
	e.tab.w.note(e.tab.name, "is closed")
	e.call("disposing", time.Minute, e.saver.Dispose)
	e.run.crash(e.tab)
}
