package rooms

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// BenchmarkFanOut measures a room of a thousand participants. One of them answers repeatedly. The measured time is
// from its message to the last byte of the new state at each other participant.
//
//	go test -run '^$' -bench FanOut -benchtime 100x ./server/rooms
func BenchmarkFanOut(b *testing.B) {
	const size = 1000
	a := start(b, Config{Store: kvtest.Open(b), StoreLimit: time.Minute})
	speaker := connect(b, a)
	id := speaker.create("speaker")
	told := make(chan time.Time, 1<<20)
	for i := range size - 1 {
		listen(b, a, id, fmt.Sprintf("listener %d", i), told)
	}
	for text := ""; present(text) < size; {
		text = speaker.text()
	}
	for settled := false; !settled; {
		select {
		case <-told:
		case <-time.After(time.Second):
			settled = true
		}
	}

	var delays []time.Duration
	b.ResetTimer()
	for i := range b.N {
		sent := time.Now()
		speaker.answer(fmt.Sprint(i))
		for range size - 1 {
			delays = append(delays, (<-told).Sub(sent))
		}
		speaker.text()
	}
	b.StopTimer()
	slices.Sort(delays)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50-ms", .5}, {"p99-ms", .99}, {"max-ms", 1}} {
		d := delays[int(q.at*float64(len(delays)-1))]
		b.ReportMetric(float64(d.Microseconds())/1000, q.name)
	}
}

// sinks are the read buffers of listeners: one for each that currently reads.
var sinks = sync.Pool{New: func() any { return new([1 << 17]byte) }}

// listen enters a room and records when each message arrives. The clients share the machine with the server, so this
// client only reads.
func listen(b *testing.B, a *instance, id, name string, told chan<- time.Time) {
	c := connectOnly(b, a)
	c.enter(id, name)
	go func() {
		for {
			_, reader, err := c.conn.Reader(context.Background())
			if err != nil {
				return
			}
			sink := sinks.Get().(*[1 << 17]byte)
			for err == nil {
				_, err = reader.Read(sink[:])
			}
			sinks.Put(sink)
			told <- time.Now()
		}
	}()
}

// connectOnly opens a socket and leaves reading to the caller.
func connectOnly(b *testing.B, a *instance) *client {
	conn, _, err := websocket.Dial(b.Context(), a.url, nil)
	require.NoError(b, err)
	conn.SetReadLimit(1 << 22)
	b.Cleanup(func() { _ = conn.CloseNow() })
	_, first, err := conn.Read(b.Context())
	require.NoError(b, err)
	c := &client{t: b, conn: conn, inbox: make(chan string, 1)}
	c.inbox <- string(first)
	c.token = c.next().UserToken
	return c
}
