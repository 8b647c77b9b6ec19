package asks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// book is the scene of a client that wants a document, while others edit documents below it.
type book struct {
	t     *testing.T
	table *locks.Table
	relay *Relay
	mu    sync.Mutex         // of the fields below
	open  map[string]string  // the askers of the questions that holders have received and whose end they have not seen, by document
	ended map[string]Outcome // how questions ended, by document
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{t: t, open: map[string]string{}, ended: map[string]Outcome{}}
	store := memory.New().Client(nil)
	b.table = tableOver(t, store)
	b.relay = New(store, b.table, func(document string, a Ask, ended Outcome) []kv.Op {
		b.mu.Lock()
		defer b.mu.Unlock()
		if ended == "" {
			b.open[document] = a.By.ID
		} else {
			delete(b.open, document)
			b.ended[document] = ended
		}
		return nil
	})
	return b
}

func request(holder string, names ...string) locks.Request {
	return locks.Request{Paths: []locks.Path{append(locks.Path{"documents"}, names...)}, Holder: locks.Holder{ID: holder}, TTL: time.Hour}
}

// edits acquires documents of the book for holders with the same names.
func (b *book) edits(chapters ...string) (held map[string]locks.Lease) {
	b.t.Helper()
	held = map[string]locks.Lease{}
	for _, chapter := range chapters {
		lease, err := b.table.Acquire(b.t.Context(), request(chapter, "book", chapter))
		assert.NoError(b.t, err)
		held[chapter] = lease
	}
	return held
}

func (b *book) asks(ctx context.Context, r locks.Request) chan error {
	outcome := make(chan error, 1)
	go func() {
		_, err := b.relay.Ask(ctx, r, grace)
		outcome <- err
	}()
	synctest.Wait()
	return outcome
}

func (b *book) accepts(chapter string) {
	b.t.Helper()
	require.NoError(b.t, b.relay.Accept(b.t.Context(), Answer{Document: id(chapter), Holder: chapter}))
}

func (b *book) releases(chapter string, held map[string]locks.Lease) {
	b.t.Helper()
	require.NoError(b.t, b.table.Release(b.t.Context(), held[chapter].ID, chapter))
}

// id is the id of the document of a chapter.
func id(chapter string) string {
	document, _ := locks.Path{"documents", "book", chapter}.Document()
	return document
}

func ids(chapters ...string) (list []string) {
	for _, chapter := range chapters {
		list = append(list, id(chapter))
	}
	return list
}

// asked returns the documents whose holders have an open question.
func (b *book) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.open))
}

// All editors below a document are asked at once. The last one may begin to save when the first one has released its lock long ago.
func TestEachEditorBelowIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		held := b.edits("1", "2", "3")
		outcome := b.asks(t.Context(), request("bob", "book"))
		require.Equal(t, ids("1", "2", "3"), b.asked())
		b.accepts("1")
		b.releases("1", held)
		b.releases("3", held) // without an answer: its page is closed
		time.Sleep(grace - time.Millisecond)
		b.accepts("2")
		time.Sleep(AcceptLimit - time.Millisecond)
		require.Empty(t, outcome, "the last editor still saves")
		b.releases("2", held)
		require.NoError(t, <-outcome)
		left, _, err := b.relay.store.Range(t.Context(), prefix)
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

// One of several editors refuses, or does not answer. The question to each other editor ends, so that it edits on.
func TestOneOfSeveralEditorsKeepsItsLock(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*book)
		err    any
		ended  map[string]Outcome
	}{
		"refused": {func(b *book) {
			require.NoError(b.t, b.relay.Refuse(b.t.Context(), Answer{Document: id("2"), Holder: "2"}, "no", false))
		}, new(*RefusedError), map[string]Outcome{id("1"): Cancelled, id("2"): Refused}},
		"silent": {func(*book) { time.Sleep(grace) }, nil, map[string]Outcome{id("1"): Cancelled, id("2"): TimedOut}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBook(t)
				b.edits("1", "2")
				outcome := b.asks(t.Context(), request("bob", "book"))
				b.accepts("1")
				test.answer(b)
				if err := <-outcome; test.err != nil {
					require.ErrorAs(t, err, test.err)
				} else {
					require.ErrorIs(t, err, ErrTimeout)
				}
				assert.Equal(t, test.ended, b.ended)
			})
		})
	}
}

// The asker leaves. Each editor gets the end of its question.
func TestAnAskerOfSeveralEditorsLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		b.edits("1", "2")
		ctx, leave := context.WithCancel(t.Context())
		outcome := b.asks(ctx, request("bob", "book"))
		leave()
		require.ErrorIs(t, <-outcome, context.Canceled)
		assert.Equal(t, map[string]Outcome{id("1"): Cancelled, id("2"): Cancelled}, b.ended)
	})
}

// Somebody else has asked one of the editors. The others are not asked, and nothing is left of the questions to them.
func TestOneOfSeveralEditorsHasBeenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		held := b.edits("1", "2")
		cleo := b.asks(t.Context(), request("cleo", "book", "2"))
		require.ErrorIs(t, <-b.asks(t.Context(), request("bob", "book")), ErrBusy)
		assert.Equal(t, ids("2"), b.asked())
		questions, _, err := b.relay.store.Range(t.Context(), prefix)
		require.NoError(t, err)
		assert.Len(t, questions, 1)
		b.releases("2", held)
		require.NoError(t, <-cleo)
	})
}

// The asker has a lease below the document itself. Nobody gives a lock away in vain.
func TestNobodyIsAskedForALockThatTheAskerBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		b.edits("1")
		_, err := b.table.Acquire(t.Context(), request("bob", "book", "own"))
		require.NoError(t, err)
		outcome := b.asks(t.Context(), request("bob", "book"))
		assert.Empty(t, b.asked())
		require.ErrorIs(t, <-outcome, locks.ErrTimeout)
	})
}

// A tab of the asker's browser has left a lease below the document. The request replaces it, and the other editor is asked.
func TestAnAskerReplacesItsOwnLease(t *testing.T) {
	for _, passes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBook(t)
			held := b.edits("1")
			r := request("bob", "book", "own")
			own, err := b.table.Acquire(t.Context(), r)
			require.NoError(t, err)
			synctest.Wait() // the server sees it
			r = request("bob", "book")
			r.Exact, r.Replace, r.PassOn = true, []int64{own.Token}, passes
			outcome := b.asks(t.Context(), r)
			require.Equal(t, ids("1"), b.asked())
			b.releases("1", held)
			require.NoError(t, <-outcome)
		})
	}
}

// Somebody begins to edit a document below after the asker has looked, and before it is in the queue. That editor is asked as well, and the
// others are asked once.
func TestAnEditorBelowComesBeforeTheAskerIsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBetween(t)
		received := map[string]int{}
		b.asker.record = func(document string, _ Ask, ended Outcome) []kv.Op {
			if ended == "" {
				received[document]++
			}
			return nil
		}
		edit := func(chapter string) locks.Lease {
			lease, err := b.relay.table.Acquire(t.Context(), request(chapter, "book", chapter))
			assert.NoError(t, err)
			return lease
		}
		held := map[string]locks.Lease{"1": edit("1")}
		b.before = func() bool {
			e, _, err := b.relay.store.Get(t.Context(), prefix+id("1"))
			return assert.NoError(t, err) && e.Found()
		}
		b.change = func() { held["2"] = edit("2") }
		outcome := make(chan error, 1)
		go func() {
			_, err := b.asker.Ask(t.Context(), request("bob", "book"), grace)
			outcome <- err
		}()
		synctest.Wait()
		assert.Equal(t, map[string]int{id("1"): 1, id("2"): 1}, received)
		for chapter, lease := range held {
			require.NoError(t, b.relay.table.Release(t.Context(), lease.ID, chapter))
		}
		require.NoError(t, <-outcome)
	})
}
