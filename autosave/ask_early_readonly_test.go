package autosave_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
)

// A page that has just lost its lock asks for it before it knows that it is read-only. It gets autosave:readonly first, and then
// autosave:editable.
func TestPageGetsReadonlyBeforeItEditsAgain(t *testing.T) {
	for name, noStandby := range map[string]bool{"it waits in the queue": false, "it does not wait": true} {
		t.Run(name, func(t *testing.T) {
			drafted(t, func(t *testing.T, w *world, storage *autosavetest.DraftStorage) {
				a := w.author("a", storage)
				a.config.NoStandby = noStandby
				a.start()
				a.types("one")
				w.sleep(time.Second)
				a.slowSeal()
				a.types(", two")
				a.forget()
				stealer := w.stealer()
				require.NoError(t, stealer.Release(t.Context()))
				for !a.ReadOnly() {
					time.Sleep(time.Millisecond)
				}
				require.NoError(t, a.RequestEdit(t.Context(), autosave.EditOptions{}))
				w.sleep(time.Second)
				var order []autosave.EventType
				a.mu.Lock()
				for _, e := range a.events {
					if e.Type == autosave.EventReadonly || e.Type == autosave.EventEditable {
						order = append(order, e.Type)
					}
				}
				a.mu.Unlock()
				assert.Equal(t, []autosave.EventType{autosave.EventReadonly, autosave.EventEditable}, order)
			})
		})
	}
}

// slowSeal makes the drafts of the page take 50 ms to store a text.
func (a *writer) slowSeal() {
	a.files.Before = func(operation string) {
		if operation == "seal" {
			time.Sleep(50 * time.Millisecond)
		}
	}
}
