package locks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// pages lists a path with a page size, and returns the tokens and the names of the waiters.
func pages(t *testing.T, table *locks.Table, p locks.Path, size int) (tokens []int64, waiters []string) {
	t.Helper()
	for after := ""; ; {
		page, err := table.List(t.Context(), p, after, size)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Holders)+len(page.Waiters), size)
		for _, h := range page.Holders {
			tokens = append(tokens, h.Token)
		}
		for _, w := range page.Waiters {
			waiters = append(waiters, w.Holder.Name)
		}
		if after = page.Next; after == "" {
			return tokens, waiters
		}
		require.Equal(t, size, len(page.Holders)+len(page.Waiters), "a page that is not the last is full")
	}
}

// waitInLine has 70 holders wait for places or for the place above them. It returns their names in order of arrival.
func waitInLine(t *testing.T, table *locks.Table) (line []string) {
	t.Helper()
	for i := range 70 {
		r := locks.Request{Paths: []locks.Path{at("a", fmt.Sprint(200-i%3))}, Holder: who(fmt.Sprintf("w%d", i)), TTL: long, Wait: time.Minute}
		if i%5 == 0 {
			r.Paths = []locks.Path{at("a")}
		}
		line = append(line, r.Holder.Name)
		go func() { _, _ = table.Acquire(t.Context(), r) }()
		require.Eventually(t, func() bool { return table.Waiting() == i+1 }, 10*time.Second, time.Millisecond)
	}
	return line
}

// A listing has all holders and all waiters in order of arrival, for every page size and on each server.
func TestListingsAreComplete(t *testing.T) {
	store := kvtest.Open(t)
	table := open(t, store)
	other := open(t, kvtest.Again(t, store))
	var want []int64
	var ends []string
	hold := func(p locks.Path, mode locks.Mode) {
		l, err := table.Acquire(t.Context(), locks.Request{Paths: []locks.Path{p}, Mode: mode, Holder: ann, TTL: long})
		require.NoError(t, err)
		if mode != "" || p[0] == "a" {
			want = append(want, l.Token)
		} else {
			ends = append(ends, l.ID)
		}
	}
	for i := range 130 { // more than one read returns
		hold(at("a", fmt.Sprint(200-i)), "")
		hold(at("b", fmt.Sprint(i)), "")
	}
	for _, id := range ends {
		require.NoError(t, table.Release(t.Context(), id, ann.ID))
	}
	for range 3 {
		hold(at("a", "shared"), locks.Shared)
	}
	line := waitInLine(t, table)
	for i, size := range []int{1, 7, 130, 133, 134, 1000} {
		for _, server := range []*locks.Table{table, other} {
			tokens, waiters := pages(t, server, at("a"), size)
			assert.Equal(t, want, tokens, size)
			assert.Equal(t, line, waiters, size)
		}
		locks.SetFew(t, i+2) // now there are too many to sort
	}
	tokens, waiters := pages(t, table, at("a", "199"), 10)
	assert.Equal(t, want[1:2], tokens)
	assert.Len(t, waiters, 14+19, "the list has the locks on the place and on the place above")
	for _, bad := range []string{"x", "h", "h-1", "w1", "h1.", "w.", "h9999999999999999999"} {
		_, err := table.List(t.Context(), at("a"), bad, 10)
		var invalid *locks.InvalidError
		require.ErrorAs(t, err, &invalid, bad)
	}
	table.Close()
}

// A listing omits expired leases, swept or not. A server whose view lags omits released ones too.
func TestListingsOmitEndedLeases(t *testing.T) {
	store := kvtest.Open(t)
	table, err := locks.Open(t.Context(), store, locks.Config{}) // without a sweeper
	require.NoError(t, err)
	t.Cleanup(table.Close)
	for i := range 120 {
		r := want(ann, at("a", fmt.Sprint(i)))
		if i%2 == 0 {
			r.TTL = 200 * time.Millisecond
		}
		_, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		tokens, _ := pages(t, table, at("a"), 50)
		return len(tokens) == 60
	}, 10*time.Second, 10*time.Millisecond)
	l, err := table.Acquire(t.Context(), want(ann, at("a", "last")))
	require.NoError(t, err)
	other := open(t, kvtest.Again(t, store))
	for range 50 {
		require.NoError(t, table.Release(t.Context(), l.ID, ann.ID))
		tokens, _ := pages(t, other, at("a"), 1000)
		require.NotContains(t, tokens, l.Token)
		l, err = table.Acquire(t.Context(), want(ann, at("a", "last")))
		require.NoError(t, err)
		tokens, _ = pages(t, other, at("a"), 1000)
		require.Contains(t, tokens, l.Token)
	}
}
