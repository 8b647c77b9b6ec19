package autosave_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/lock"
)

// writer is a tab whose editor journals what is typed, as the browser package does.
type writer struct {
	*page
	pageDrafts *autosavetest.PageDrafts
	dead       atomic.Bool
	lineages   int
	id, base   string
	number     int64 // counts the changes of this page
	stored     int64 // the changes that a commit or a sealed draft has, of this lineage
	drafts     []autosave.Draft
	conflicts  []autosave.Conflict
	waits      []autosave.Draft // in the last autosave:editable
}

// author prepares a page with drafts that are kept on the storage.
func (w *world) author(name string, storage *autosavetest.DraftStorage) *writer {
	a := &writer{page: w.prepare(name)}
	a.pageDrafts = storage.PageDrafts(&a.files.Steps)
	locker := w.space.Client(name)
	locker.Refuse = func(lock.Request) error {
		if a.dead.Load() {
			return lock.ErrUnsupported // its program runs on in the test, without a browser
		}
		return nil
	}
	a.options.Backends[0].Locker = locker
	a.renew("")
	a.config.Drafts = a.pageDrafts
	a.config.Snapshot, a.config.Listener = a.take, a.listen
	a.pageDrafts.Unsaved = func() (autosave.Draft, []byte, bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.now(), []byte(a.text), a.number > a.stored
	}
	a.pageDrafts.Discarded = func(number int64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.stored = max(a.stored, number)
	}
	return a
}

// start opens the page.
func (a *writer) start() *writer {
	a.w.Helper()
	a.open()
	return a
}

// continues makes a page that is not open go on with the text of a page whose program has ended, as a page does that returns from the cache of
// the browser.
func (a *writer) continues(before *writer) *writer {
	before.mu.Lock()
	defer before.mu.Unlock()
	a.text, a.id, a.base, a.number, a.stored = before.text, before.id, before.base, before.number, before.stored
	a.config.Shown, a.config.Lineage, a.config.Dirty = a.base, a.id, a.number > a.stored
	return a
}

// renew begins another lineage, typed on a generation.
func (a *writer) renew(base string) {
	a.lineages++
	a.id, a.base, a.stored = fmt.Sprintf("%s-%d", a.name, a.lineages), base, a.number
}

func (a *writer) now() autosave.Draft {
	return autosave.Draft{ID: a.id, Number: a.number, OwnerID: a.name, OwnerName: "tab " + a.name, At: a.w.clock.Now().Wall, Base: a.base}
}

func (a *writer) take(context.Context) (autosave.Content, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return autosave.Numbered{Content: autosave.Bytes(a.text), Draft: a.id, Number: a.number}, nil
}

// types changes the text and journals it.
func (a *writer) types(s string) {
	a.mu.Lock()
	a.text += s
	a.number++
	now, text := a.now(), a.text
	a.mu.Unlock()
	a.pageDrafts.Journal(now, []byte(text))
	if a.Saver == nil {
		a.config.Dirty = true
		return
	}
	a.MarkDirty()
}

// listen does what a page does. It seals the text that was typed after the last seal
// before it shows another one.
func (a *writer) listen(e autosave.Event) {
	a.mu.Lock()
	switch {
	case e.Type == autosave.EventSaved && e.Generation.Draft == a.id:
		a.stored, a.base = max(a.stored, e.Generation.Number), e.Generation.ID
		a.pageDrafts.Saved(a.id, e.Generation.Number)
	case e.Type == autosave.EventEditable && e.Loaded:
		if a.number > a.stored {
			a.mu.Unlock()
			_, _ = a.pageDrafts.Seal(context.Background(), autosave.CauseLockLost)
			a.mu.Lock()
		}
		a.renew(e.Base)
	case e.Type == autosave.EventEditable && a.number == a.stored:
		a.base = e.Base
	}
	if e.Type == autosave.EventEditable {
		a.waits = e.Drafts
	}
	if g := e.Generation; g != nil && e.Type == autosave.EventPhase && g.Draft == a.id && e.State.ReadOnly { // an editor saves its text anyway
		a.stored = max(a.stored, g.Number)
		a.pageDrafts.Saved(a.id, g.Number)
	}
	if e.Draft != nil {
		a.drafts = append(a.drafts, *e.Draft)
	}
	if e.Conflict != nil {
		a.conflicts = append(a.conflicts, *e.Conflict)
	}
	a.mu.Unlock()
	a.hear(e)
}

// die ends the page without a word.
func (a *writer) die() {
	a.dead.Store(true)
	a.channel.Deafen(true)
	a.pageDrafts.End()
	a.w.space.Kill(a.name)
	synctest.Wait()
}

// texts returns what the drafts have that wait for a decision.
func (a *writer) texts() (texts []string) {
	a.w.Helper()
	all, err := a.Drafts(a.w.Context())
	require.NoError(a.w, err)
	for _, d := range all {
		text, err := a.Read(a.w.Context(), d.ID)
		require.NoError(a.w, err)
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

// reportedDrafts returns the drafts that the saver reported to the page.
func (a *writer) reportedDrafts() []autosave.Draft {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.drafts)
}

// disputes returns the conflicts that the saver reported to the page, as "base|mine|theirs".
func (a *writer) disputes() (told []string) {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conflicts {
		told = append(told, sides(c))
	}
	return told
}

func sides(c autosave.Conflict) string {
	base := string(c.Base)
	if c.Base == nil {
		base = "(gone)"
	}
	return base + "|" + string(c.Mine) + "|" + string(c.Theirs)
}

// tryOpenFor opens a page that may never get its lock or its store to answer.
func (a *writer) tryOpenFor(limit time.Duration) error {
	var err error
	a.manager, err = lock.NewManager(a.options)
	require.NoError(a.w, err)
	a.config.Store, a.config.Locks = a.store, a.manager
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	a.Saver, err = autosave.New(ctx, a.config)
	a.w.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Hour)
		defer stop()
		if err == nil {
			_ = a.Dispose(ctx)
		}
		_ = a.manager.Close(ctx)
	})
	return err
}
