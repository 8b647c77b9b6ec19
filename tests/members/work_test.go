package members

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/remote"
)

// patience is the maximum time of anything, on a machine that does much else.
const patience = 3 * time.Minute

const document = "d"

// work is clients behind the proxy: an editor that holds one lock throughout and saves under it, another that waits for
// that lock, a reader of the events, and a program that locks and saves documents of its own.
type work struct {
	t       *testing.T
	url     string
	editor  *client.Client
	lease   *client.Lease
	cancel  context.CancelFunc
	working sync.WaitGroup // the editor and the program, until cancel
	reading sync.WaitGroup // the reader, until the lock is released

	saves, turns atomic.Int64 // acknowledged saves of the editor, and turns of the program
	longest      atomic.Int64 // operation
	text         string       // that was acknowledged last
	made, seen   []string     // ETags
	granted      chan *client.Lease
}

func begin(t *testing.T, url string, ttl time.Duration) *work {
	t.Helper()
	w := &work{t: t, url: url, granted: make(chan *client.Lease, 1)}
	w.editor = w.connect()
	var err error
	w.lease, err = w.editor.Acquire(t.Context(), client.Request{Document: document, TTL: ttl})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	t.Cleanup(func() { cancel(); w.working.Wait(); w.reading.Wait() })
	other := w.connect()
	go func() {
		lease, err := other.Acquire(t.Context(), client.Request{Document: document, Wait: client.Forever})
		if err == nil {
			w.granted <- lease
		}
	}()
	w.working.Go(func() { w.edit(ctx) })
	w.reading.Go(w.read)
	program := w.connect()
	w.working.Go(func() { w.program(ctx, program) })
	return w
}

func (w *work) connect() *client.Client {
	c, err := client.New(client.Config{URL: w.url, Patience: patience})
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) // the servers may be gone
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// timed calls f and notes how long it took.
func (w *work) timed(f func() error) error {
	begun := time.Now()
	err := f()
	if took := int64(time.Since(begun)); took > w.longest.Load() {
		w.longest.Store(took)
	}
	return err
}

// edit saves and renews until the context ends. Every save succeeds.
func (w *work) edit(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprint("text ", i)
		err := w.timed(func() error {
			info, err := w.editor.Put(w.t.Context(), w.lease.Fence(), document, []byte(text), client.PutOptions{})
			w.text, w.made = text, append(w.made, info.ETag)
			return err
		})
		if err == nil && i%5 == 0 {
			err = w.timed(func() error { return w.lease.Renew(w.t.Context()) })
		}
		if !assert.NoError(w.t, err) {
			return
		}
		w.saves.Add(1)
		pause(ctx)
	}
}

func (w *work) program(ctx context.Context, c *client.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprint("p", i%10)
		err := w.timed(func() error {
			return c.With(w.t.Context(), client.Request{Document: id, Wait: patience}, func(ctx context.Context, l *client.Lease) error {
				_, err := c.Put(ctx, l.Fence(), id, []byte(id), client.PutOptions{})
				return err
			})
		})
		if !assert.NoError(w.t, err) {
			return
		}
		w.turns.Add(1)
		pause(ctx)
	}
}

// read follows the events of the document over one socket after the other, until the lock is released.
func (w *work) read() {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*patience)
	defer cancel()
	for after := int64(0); ctx.Err() == nil; pause(ctx) {
		url := fmt.Sprintf("%s/api/documents/%s/events?after=%d", w.url, document, after)
		conn, _, err := websocket.Dial(ctx, url, nil)
		for err == nil {
			var text []byte
			if _, text, err = conn.Read(ctx); err == nil && w.heard(text, &after) {
				_ = conn.CloseNow()
				return
			}
		}
	}
}

// heard notes an event, and reports whether it is the last one.
func (w *work) heard(text []byte, after *int64) bool {
	var e struct {
		Type, ETag string
		Revision   int64
	}
	if !assert.NoError(w.t, json.Unmarshal(text, &e)) || !assert.Greater(w.t, e.Revision, *after, string(text)) {
		return true
	}
	*after = e.Revision
	if e.Type == remote.NoticeUpdated {
		w.seen = append(w.seen, e.ETag)
	}
	return e.Type == remote.NoticeUnlocked
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// goOn returns when all clients have been served some more times.
func (w *work) goOn() {
	w.t.Helper()
	saves, turns := w.saves.Load()+10, w.turns.Load()+10
	require.Eventually(w.t, func() bool { return w.saves.Load() >= saves && w.turns.Load() >= turns }, patience, 20*time.Millisecond)
	require.NoError(w.t, w.lease.Err())
}

// end checks the state at the end: the lock was never lost, the waiter gets it next, the content is the last save,
// and the events told of each save once and in order.
func (w *work) end() {
	w.t.Helper()
	w.cancel()
	w.working.Wait()
	require.Empty(w.t, w.granted, "the waiter does not get a lock that is held")
	require.NoError(w.t, w.lease.Release(w.t.Context()))
	assert.Greater(w.t, (<-w.granted).Token(), w.lease.Token())
	w.reading.Wait()
	content, err := w.editor.Get(w.t.Context(), document, client.GetOptions{})
	require.NoError(w.t, err)
	assert.Equal(w.t, w.text, string(content.Data))
	assert.Equal(w.t, w.made, w.seen)
	w.t.Logf("%d saves and %d locks of others; the longest operation took %s",
		w.saves.Load(), w.turns.Load(), time.Duration(w.longest.Load()).Round(time.Millisecond))
}
