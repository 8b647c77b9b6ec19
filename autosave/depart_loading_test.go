package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// slowSeal is a storage of drafts that takes three seconds for a draft from the time when slow is set.
type slowSeal struct {
	autosave.Drafts
	slow bool
}

func (s *slowSeal) Seal(ctx context.Context, cause autosave.Cause) (*autosave.Draft, error) {
	if s.slow {
		s.slow = false
		time.Sleep(3 * time.Second)
	}
	return s.Drafts.Seal(ctx, cause)
}

// A page with unsaved text is suspended or closed while it loads. The load ends while the page still stores its text as a draft. The page does
// not edit then, and another page gets the lock.
func TestPageThatDepartsWhileItLoadsDoesNotEdit(t *testing.T) {
	for name, departs := range map[string]struct {
		how   func(*writer, context.Context) error
		fails error // of how
		told  error // the answer to a request for the lock
	}{
		"suspended": {func(a *writer, ctx context.Context) error { return a.Suspend(ctx) }, nil, autosave.ErrReadOnly},
		"closed":    {func(a *writer, ctx context.Context) error { return a.Dispose(ctx) }, autosave.ErrReadOnly, autosave.ErrDisposed},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.author("a", storage)
				drafts := &slowSeal{Drafts: a.pageDrafts}
				a.config.NoStandby, a.config.Drafts = true, drafts
				a.start()
				a.types("one")
				w.sleep(time.Second)
				w.stealFrom(a, ", mine")
				w.overwritten("theirs")
				stopped, goOn := a.stopsAt("read history/")
				asked, departed := make(chan error, 1), make(chan error, 1)
				go func() { asked <- a.RequestEdit(t.Context(), autosave.EditOptions{}) }()
				require.True(t, stopped())
				a.forget()
				drafts.slow = true
				go func() { departed <- departs.how(a, t.Context()) }()
				w.sleep(time.Second)
				goOn()
				w.sleep(time.Second)
				assert.True(t, a.ReadOnly())
				require.ErrorIs(t, <-departed, departs.fails)
				require.ErrorIs(t, <-asked, departs.told)
				assert.Zero(t, a.count(autosave.EventEditable))
				assert.Equal(t, "one, mine", a.shows())
				b := w.author("b", storage).start()
				assert.Equal(t, "theirs", b.shows())
				assert.Equal(t, []string{"one, mine"}, b.texts())
			})
		})
	}
}
