package autosave_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// The asker sleeps until the offers of both editors are over, and reads them one after the other. The editors go on, and it takes
// the lock only when both have answered its new question.
func TestOffersForAFormerQuestionCountForNothing(t *testing.T) {
	for _, at := range []autosave.MessageKind{autosave.EditAccepted, autosave.EditGranted} {
		t.Run(string(at), func(t *testing.T) {
			virtual(t, func(t *testing.T, w *world) {
				a, s := w.document("a", "book/1"), w.document("s", "book/2")
				s.offersOnce(2 * time.Second)
				a.open()
				s.open()
				b := w.document("b", "book")
				wake := make(chan struct{})
				b.config.Channel = sleeping{b.channel, at, wake}
				b.open()
				asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
				w.sleep(14 * time.Second)
				require.False(t, a.ReadOnly(), "the offers are over")
				require.False(t, s.ReadOnly())
				s.typed("meanwhile")
				close(wake)
				require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
				w.sleep(time.Minute)
				assert.False(t, s.ReadOnly())
				assert.Zero(t, s.count(autosave.EventReadonly))
			})
		})
	}
}

// The asker receives the answer while it looks once more for the editor, after its time. Force takes nothing from an editor that refuses.
func TestForceObeysARefusalDuringTheLastLook(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.OnHandover = refuses
		a.open()
		b := w.prepare("b")
		wake := make(chan struct{})
		b.config.Channel = sleeping{b.channel, autosave.EditAccepted, wake}
		b.locks = func(l autosave.Locks) autosave.Locks { return slowToInspect{l} }
		b.open()
		asked := b.asks(t.Context(), force)
		w.sleep(time.Second + 10*time.Millisecond)
		close(wake)
		require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
		assert.False(t, a.ReadOnly())
	})
}

// lateOffers is the channel of a page that receives one kind of message of another page late.
type lateOffers struct {
	autosave.Channel
	from string
	kind autosave.MessageKind
	by   time.Duration
}

func (l lateOffers) Listen(handle func(autosave.Message)) (func(), error) {
	return l.Channel.Listen(func(m autosave.Message) {
		if m.Kind == l.kind && (l.from == "" || m.From == l.from) {
			time.AfterFunc(l.by, func() { handle(m) })
			return
		}
		handle(m)
	})
}

// The asker reads an offer shortly before its end. Another editor offers its lock after that end: the first one edits again, and is
// asked once more.
func TestOfferThatArrivesLateEndsOnTime(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, s := w.document("a", "book/1"), w.document("s", "book/2")
		a.offersOnce(2 * time.Second)
		s.vetoes(2500*time.Millisecond, nil)
		s.savesSlowly()
		a.open()
		s.open()
		b := w.document("b", "book")
		b.config.Channel = lateOffers{b.channel, "a", autosave.EditGranted, 8500 * time.Millisecond}
		b.open()
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
		w.sleep(2400 * time.Millisecond)
		s.typed("saving this takes long")
		w.sleep(8 * time.Second)
		require.False(t, a.ReadOnly(), "its offer is over")
		require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
	})
}

// The editor offers its lock and is closed. The asker reads the offer when another page has edited for some seconds: that page is asked.
func TestOfferOfAClosedPageTakesNothingFromItsSuccessor(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		c := w.prepare("c")
		c.config.OnHandover = refuses
		c.open()
		b := w.prepare("b")
		wake := make(chan struct{})
		b.config.Channel = sleeping{b.channel, autosave.EditGranted, wake}
		b.open()
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
		w.sleep(time.Second)
		require.NoError(t, a.Dispose(t.Context()))
		w.sleep(time.Second)
		require.False(t, c.ReadOnly())
		c.typed("text")
		w.sleep(3 * time.Second)
		close(wake)
		require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
		w.sleep(time.Second)
		assert.False(t, c.ReadOnly())
	})
}

// All offers arrive when they are over. Force takes nothing from an editor that has answered every question.
func TestForceTakesNothingFromAnEditorWhoseOffersArriveLate(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.tab("a")
		b := w.prepare("b")
		b.config.Channel = lateOffers{b.channel, "", autosave.EditGranted, 11 * time.Second}
		b.open()
		require.ErrorIs(t, b.RequestEdit(t.Context(), autosave.EditOptions{Force: true, Grace: time.Minute}), autosave.ErrHandoverNoAnswer)
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
	})
}

// The asker repeats its question as the offer ends. It gets an answer, whichever the editor notices first.
func TestQuestionAsTheOfferEndsIsAnswered(t *testing.T) {
	for range 20 {
		virtual(t, func(t *testing.T, w *world) {
			a := w.prepare("a")
			busy := held{a.channel, autosave.EditBusy, make(chan struct{})}
			a.config.Channel = busy
			asked := a.vetoes(0, nil)
			a.open()
			other := w.network.Join()
			offers := 0
			stop, err := other.Listen(func(m autosave.Message) {
				if m.Kind == autosave.EditGranted {
					offers++
				}
			})
			require.NoError(t, err)
			defer stop()
			asks := func(round string) {
				require.NoError(t, other.Post(autosave.Message{Kind: autosave.EditRequest, Round: round, From: "other"}))
			}
			asks("1")
			w.sleep(9 * time.Second)
			require.Equal(t, 1, offers)
			asks("2")
			w.sleep(2 * time.Second)
			asks("1")
			w.sleep(0)
			close(busy.let)
			w.sleep(time.Second)
			assert.Equal(t, 2, offers)
			assert.Len(t, *asked, 2)
		})
	}
}

// The asker reads an offer shortly before its end, and waits for a name around the document. When it gets that name, the editor goes on.
func TestStealWaitsNoLongerThanItsOffer(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.document("a", "book/1").open()
		m := w.manager("waits")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			_, _ = m.Acquire(ctx, lock.AcquireOptions{Path: []string{"book"}, Timeout: time.Hour, Backoff: lock.Backoff{MaxRetries: lock.Unlimited}})
		}()
		w.sleep(0)
		b := w.document("b", "book/1")
		b.config.Channel = lateOffers{b.channel, "a", autosave.EditGranted, 8500 * time.Millisecond}
		b.open()
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
		w.sleep(12 * time.Second)
		require.False(t, a.ReadOnly(), "the offer is over")
		stop()
		require.ErrorIs(t, <-asked, autosave.ErrReadOnly)
		w.sleep(time.Second)
		assert.False(t, a.ReadOnly())
	})
}

// sleepyLocks sleep while they are inspected.
type sleepyLocks struct {
	autosave.Locks
	by *atomic.Int64
}

func (l sleepyLocks) Inspect(ctx context.Context) ([]lock.Holder, []lock.Waiter, error) {
	time.Sleep(time.Duration(l.by.Load()))
	return l.Locks.Inspect(context.WithoutCancel(ctx))
}

// The asker reads an offer shortly before its end, and sleeps while it looks who edits. The editor goes on, and is asked again.
func TestOfferThatEndsDuringTheLookIsOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		times := a.offersOnce(0)
		a.open()
		b := w.prepare("b")
		b.config.Channel = lateOffers{b.channel, "a", autosave.EditGranted, 8500 * time.Millisecond}
		var by atomic.Int64
		b.locks = func(l autosave.Locks) autosave.Locks { return sleepyLocks{l, &by} }
		b.open()
		by.Store(int64(3 * time.Second))
		asked := b.asks(t.Context(), autosave.EditOptions{Grace: time.Minute})
		require.ErrorIs(t, <-asked, autosave.ErrHandoverRefused)
		assert.False(t, a.ReadOnly())
		assert.Equal(t, 2, *times)
	})
}

// unnumbered is the channel of a page of an older version, whose answers have no number.
type unnumbered struct{ autosave.Channel }

func (u unnumbered) Post(m autosave.Message) error {
	m.Question = 0
	return u.Channel.Post(m)
}

func TestOfferOfAnOlderVersionCounts(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a := w.prepare("a")
		a.config.Channel = unnumbered{a.channel}
		a.open()
		b := w.tab("b")
		require.NoError(t, b.RequestEdit(t.Context(), autosave.EditOptions{}))
		assert.False(t, b.ReadOnly())
		assert.True(t, a.ReadOnly())
	})
}
