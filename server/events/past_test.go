package events

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// A client resumes at a server that has just started. It gets each event that it has missed, once and in order. The store is not asked for
// a watch of the past, during which etcd would delay all writes, unless the events cannot be found otherwise.
func TestPastEventsNeedNoWatch(t *testing.T) {
	defer func(n int) { maxMissed = n }(maxMissed)
	maxMissed = 4
	for missed, watches := range map[string]int{
		"known: locked updated unlocked":                0,
		"known: updated":                                0,
		"locked updated":                                0,
		"updated unlocked":                              1, // the name may have had a lock before
		"known: locked updated updated updated updated": 1,
		"known: unlocked forgotten locked":              1, // a deletion in between removed the events
	} {
		list, known := strings.CutPrefix(missed, "known: ")
		heard, past := resumeAfter(t, strings.Fields(list), known)
		assert.Equal(t, strings.Fields(strings.ReplaceAll(list, forgotten, "")), heard)
		assert.Equal(t, watches, past, missed)
	}
}

// forgotten stands for the deletion of the document among its events.
const forgotten = "forgotten"

// resumeAfter returns the events that a client gets that has missed some, and the number of deliveries of watches. The document is known if it
// has had an event before.
func resumeAfter(t *testing.T, missed []string, known bool) (heard []string, past int) {
	m := memory.New()
	defer m.Close()
	store := m.Client(func(_ context.Context, request string) (before, after error) {
		if request == "watch" {
			past++
		}
		return nil, nil
	})
	defer func() { assert.NoError(t, store.Close()) }()
	if known {
		commit(t, store, Record("r", Event{Type: Unlocked}))
	}
	after, last := commit(t, store, kv.Put("other", nil)), int64(0)
	for _, name := range missed {
		if name == forgotten {
			commit(t, store, Forget("r"))
			continue
		}
		last = commit(t, store, Record("r", Event{Type: "document." + name}))
		commit(t, store, Record("rr", Event{Type: Updated}))
	}
	h, err := Open(t.Context(), store, nil)
	require.NoError(t, err)
	defer h.Close()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	all, turns := errors.New("all"), 0
	turn := func() (func(), error) { turns++; return func() { turns-- }, nil }
	err = h.Stream(ctx, "r", after, turn, func(text []byte) error {
		assert.Equal(t, 1, turns)
		var e Event
		require.NoError(t, json.Unmarshal(text, &e))
		if heard = append(heard, strings.TrimPrefix(e.Type, "document.")); e.Revision == last {
			return all
		}
		return nil
	})
	require.ErrorIs(t, err, all)
	assert.Zero(t, turns)
	return heard, past
}
