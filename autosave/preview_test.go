package autosave_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// unreachableStore is a store whose other machine does not answer. Its copy takes a while to read.
type unreachableStore struct {
	autosave.Store
	pause time.Duration
}

func (a unreachableStore) Online() bool               { return false }
func (a unreachableStore) Watch(func()) (stop func()) { return func() {} }
func (a unreachableStore) Preview(ctx context.Context) (autosave.Generation, []byte, error) {
	select {
	case <-time.After(a.pause):
		return autosave.Generation{ID: "1-1"}, []byte("copy"), nil
	case <-ctx.Done():
		return autosave.Generation{}, nil, context.Cause(ctx)
	}
}

// refusing opens a page that cannot get the lock, and whose store does not answer.
func (w *world) refusing(pause time.Duration) *page {
	p := w.prepare("a")
	locker := w.space.Client("a")
	locker.Refuse = func(lock.Request) error { return lock.ErrUnsupported }
	p.options.Backends[0].Locker = locker
	p.store = unreachableStore{p.store, pause}
	return p
}

func (p *page) types() (types []autosave.EventType) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.Type != autosave.EventPhase {
			types = append(types, e.Type)
		}
	}
	return types
}

// The copy of this machine is slow to read: the page learns at once that it may not edit.
func TestSlowPreviewDoesNotDelayReadonly(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		p := w.refusing(3 * time.Second)
		begun := time.Now()
		require.NoError(t, p.tryOpen())
		assert.Less(t, time.Since(begun), 100*time.Millisecond)
		assert.Equal(t, []autosave.EventType{autosave.EventReadonly}, p.types())
		w.sleep(5 * time.Second)
		assert.Equal(t, []autosave.EventType{autosave.EventReadonly, autosave.EventPreview}, p.types())
		assert.Equal(t, "copy", p.shows())
	})
}
