package lock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// model is a tree of locks without names, queues, owners or messages: a list of what is held.
type model struct{ held []modelLease }

type modelLease struct {
	lease  lock.Lease
	opts   lock.AcquireOptions
	owner  *lock.Manager
	within *lock.Lease
}

// keys are the places that a lease touches; the value says whether exclusively.
func keys(o lock.AcquireOptions) map[string]bool {
	paths, exclusive := o.Paths, make(map[string]bool)
	if paths == nil {
		paths = [][]string{o.Path}
	}
	for _, path := range paths {
		for i := range len(path) + 1 {
			key := strings.Join(path[:i], "/")
			exclusive[key] = exclusive[key] || i == len(path) && o.Mode != lock.Shared && o.Slots < 2
		}
	}
	for place := range exclusive { // an exclusive place includes the places below it
		for other := range exclusive {
			if exclusive[other] && other != place && (other == "" || strings.HasPrefix(place, other+"/")) {
				delete(exclusive, place)
			}
		}
	}
	return exclusive
}

// chain returns the keys that a lease and those around it hold.
func (m *model) chain(l *lock.Lease) map[string]bool {
	all := make(map[string]bool)
	for l != nil {
		i := slices.IndexFunc(m.held, func(h modelLease) bool { return h.lease.ID == l.ID })
		for key, exclusive := range keys(m.held[i].opts) {
			all[key] = all[key] || exclusive
		}
		l = m.held[i].within
	}
	return all
}

// outcome is the expected result of an acquisition that does not wait.
func (m *model) outcome(o lock.AcquireOptions, within *lock.Lease) error {
	wanted := keys(o)
	mine := m.chain(within)
	for key, exclusive := range wanted {
		if _, ok := mine[key]; ok {
			if exclusive {
				return lock.ErrReentrant
			}
			delete(wanted, key)
		}
	}
	slots := 0
	for _, h := range m.held {
		theirs := keys(h.opts)
		if h.within != nil { // it uses the locks of its chain
			for key := range m.chain(h.within) {
				delete(theirs, key)
			}
		}
		for key, exclusive := range wanted {
			if also, ok := theirs[key]; ok && (exclusive || also) {
				return lock.ErrDenied
			}
		}
		if h.opts.Slots > 1 && slices.Equal(h.opts.Path, o.Path) {
			slots++
		}
	}
	if o.Slots > 1 && slots == o.Slots {
		return lock.ErrDenied
	}
	return nil
}

var somePath = rapid.Custom(func(t *rapid.T) []string {
	return [][]string{{"u1"}, {"u2"}, {"u1", "a1"}, {"u1", "a2"}, {"u1", "a1", "r1"}, {"u1", "a1", "r2"}, {}}[rapid.IntRange(0, 6).Draw(t, "place")]
})

var someOptions = rapid.Custom(func(t *rapid.T) lock.AcquireOptions {
	o := lock.AcquireOptions{IfAvailable: true}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		o.Paths = rapid.SliceOfN(somePath, 1, 3).Draw(t, "paths")
	case 1:
		o.Path, o.Slots = somePath.Draw(t, "path"), 2
	case 2:
		o.Path, o.Mode = somePath.Draw(t, "path"), lock.Shared
	default:
		o.Path = somePath.Draw(t, "path")
	}
	return o
})

func TestModel(t *testing.T) {
	// Not in virtual time, which rapid does not run in; nothing here waits.
	space := locktest.NewSpace()
	owners := []*lock.Manager{tab(space, "a"), tab(space, "b"), tab(space, "c")}
	granted, denied := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{}
		release := func(i int) {
			h := m.held[i]
			require.NoError(rt, h.lease.Release(t.Context()))
			m.held = slices.Delete(m.held, i, i+1)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if len(m.held) > 0 && rapid.IntRange(0, 2).Draw(rt, "release") == 0 {
				i := rapid.IntRange(0, len(m.held)-1).Draw(rt, "which")
				encloses := slices.ContainsFunc(m.held, func(h modelLease) bool { return h.within != nil && h.within.ID == m.held[i].lease.ID })
				if !encloses {
					release(i)
				}
				continue
			}
			o, who, ctx := someOptions.Draw(rt, "options"), rapid.SampledFrom(owners).Draw(rt, "owner"), t.Context()
			var within *lock.Lease
			if len(m.held) > 0 && rapid.Bool().Draw(rt, "nested") {
				h := rapid.SampledFrom(m.held).Draw(rt, "within")
				within, who, ctx = &h.lease, h.owner, lock.Within(ctx, h.lease)
			}
			want := m.outcome(o, within)
			lease, err := who.Acquire(ctx, o)
			if want != nil {
				denied++
				require.ErrorIs(rt, err, want, "%+v", o)
				continue
			}
			require.NoError(rt, err, "%+v", o)
			granted++
			m.held = append(m.held, modelLease{lease, o, who, within})
		}
		for i := len(m.held) - 1; i >= 0; i-- {
			release(i)
		}
	})
	assert.Greater(t, granted, 100)
	assert.Greater(t, denied, 100)
	for _, o := range owners {
		require.NoError(t, o.Close(t.Context()))
	}
	left, err := space.Client("observer").Query(t.Context())
	require.NoError(t, err)
	assert.Empty(t, slices.Concat(left.Held, left.Pending))
}
