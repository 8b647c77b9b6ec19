//go:build js && wasm

package opfs

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

func want(name string) lock.Request {
	return lock.Request{Wants: []lock.Want{{Name: name, Mode: lock.Exclusive}}}
}

// median calls f and returns the median of the time it takes.
func median(n int, f func()) time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		begun := time.Now()
		f()
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[n/2]
}

func TestSpeed(t *testing.T) {
	root := newRoot()
	c := newClient(t, root)
	g, err := c.Request(t.Context(), want("a"))
	require.NoError(t, err)
	require.NoError(t, g.Release(t.Context()))
	t.Log("uncontended cycle, median:", median(200, func() {
		g, err := c.Request(t.Context(), want("a"))
		require.NoError(t, err)
		require.NoError(t, g.Release(t.Context()))
	}))
	t.Log("one step that reads, median:", median(200, func() {
		require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { return nil }))
	}))
	t.Log("one step that writes, median:", median(200, func() {
		require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { s.changed = true; return nil }))
	}))
	var phases []string
	at := time.Now()
	c.steps.hook = func(step string) {
		phases = append(phases, step+" "+time.Since(at).String())
		at = time.Now()
	}
	for range 3 {
		at = time.Now()
		require.NoError(t, c.steps.visit(t.Context(), func(s *session) error { s.changed = true; return nil }))
	}
	t.Log(phases)
	c.steps.hook = nil
	t.Log("first use of a client, median:", median(20, func() {
		c := newClient(t, root)
		g, err := c.Request(t.Context(), want("a"))
		require.NoError(t, err)
		require.NoError(t, g.Release(t.Context()))
	}))
}
