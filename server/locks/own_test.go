package locks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// lagging is a store whose watch shows every change late.
type lagging struct{ *kv.Store }

const lag = 100 * time.Millisecond

func (l lagging) Watch(ctx context.Context, prefix string, after int64, f func([]kv.Change) error) error {
	return l.Store.Watch(ctx, prefix, after, func(changes []kv.Change) error {
		time.Sleep(lag)
		return f(changes)
	})
}

func openLagging(t *testing.T) *Table {
	t.Helper()
	m := memory.New()
	return OpenInMemory(t, m, lagging{m.Client(nil)})
}

// ownLease is a request that conflicts with a lease of its own holder.
type ownLease struct {
	name   string
	change func(*Request, Lease)
	expect func(t *testing.T, own, got Lease, err error)
}

func ownLeases() []ownLease {
	replaced := func(t *testing.T, own, got Lease, err error) {
		require.NoError(t, err)
		assert.Greater(t, got.Token, own.Token)
	}
	return []ownLease{
		{"replaced and passed on", func(r *Request, own Lease) { r.Exact, r.Replace, r.PassOn = true, []int64{own.Token}, true }, replaced},
		{"replaced", func(r *Request, own Lease) { r.Exact, r.Replace = true, []int64{own.Token} }, replaced},
		{"left behind", func(r *Request, _ Lease) { r.Exact = true }, func(t *testing.T, own, _ Lease, err error) {
			var left *LeftError
			require.ErrorAs(t, err, &left)
			assert.Equal(t, []int64{own.Token}, left.Tokens)
		}},
		{"again", func(r *Request, _ Lease) { r.Again = true }, func(t *testing.T, own, got Lease, err error) {
			require.NoError(t, err)
			assert.Equal(t, own.Token, got.Token)
		}},
	}
}

// A request conflicts with a lease of its own holder, and the server's view still shows an earlier lease of another holder instead. So the
// request joins the queue. It must not wait there for its own lease: nobody else would end that.
func TestNobodyWaitsForAnOwnLeaseBehindALateView(t *testing.T) {
	for _, c := range ownLeases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := openLagging(t)
				r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "bob"}, TTL: time.Minute}
				former, err := table.Acquire(t.Context(), r)
				require.NoError(t, err)
				time.Sleep(2 * lag) // the view shows bob's lease
				require.NoError(t, table.Release(t.Context(), former.ID, "bob"))
				r.Holder.ID = "ann"
				own, err := table.Acquire(t.Context(), r)
				require.NoError(t, err)

				r.Wait = 5 * time.Second
				c.change(&r, own)
				begun := time.Now()
				got, err := table.Acquire(t.Context(), r)
				c.expect(t, own, got, err)
				assert.Less(t, time.Since(begun), r.Wait)
				time.Sleep(3 * lag) // the view catches up
				assert.Zero(t, table.Waiting())
			})
		})
	}
}

// The view shows a lease that the request replaces, but that has ended. A later lease of the holder conflicts as well.
func TestALaterOwnLeaseIsReportedBehindALateView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := openLagging(t)
		r := Request{Paths: []Path{{"a"}}, Holder: Holder{ID: "ann"}, TTL: time.Minute}
		former, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
		time.Sleep(2 * lag)
		require.NoError(t, table.Release(t.Context(), former.ID, "ann"))
		later, err := table.Acquire(t.Context(), r)
		require.NoError(t, err)
		r.Wait, r.Exact, r.Replace, r.PassOn = 5*time.Second, true, []int64{former.Token}, true
		_, err = table.Acquire(t.Context(), r)
		var left *LeftError
		require.ErrorAs(t, err, &left)
		assert.Equal(t, []int64{later.Token}, left.Tokens)
	})
}
