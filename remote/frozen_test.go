package remote_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
	"github.com/holdfast-dev/holdfast/remote"
)

// A tab is suspended with the lock, and its lease on the server expires. It blocks neither the other tabs of its
// browser nor other machines.
func TestSuspendedTabIsTakenOver(t *testing.T) {
	for name, elsewhere := range map[string]bool{"by another tab": false, "by another machine first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, space, records := newInternet(), locktest.NewSpace(), &locktest.Records{}
				victim, err := space.Client("frozen").Request(t.Context(), lock.Request{Wants: []lock.Want{{Name: "holdfast:project", Mode: lock.Exclusive}}})
				require.NoError(t, err)
				_, err = (&browser{net: n, session: "A"}).Send(t.Context(), remote.Request{Method: "POST", Path: "/lock"})
				require.NoError(t, err)
				now := time.Now()
				_, err = records.Claim(t.Context(), lock.Record{Resource: "holdfast:project", LeaseID: "of the frozen", AcquiredAt: now,
					ExpiresAt: now.Add(30 * time.Second), TTL: 30 * time.Second}, false)
				require.NoError(t, err)

				document := remote.NewDocument(remote.Config{Server: &browser{net: n, session: "A"}, URL: "https://locks.example/", Document: "project", Name: "next",
					Local: lock.Backend{Strategy: lock.WebLock, Resource: "holdfast:project", Locker: space.Client("next"), Records: records}})
				m, err := lock.NewManager(lock.Config{OwnerID: "next", Channel: locktest.NewNetwork().Join(), Backends: []lock.Backend{document.Backend()}})
				require.NoError(t, err)
				next := &tab{Manager: m, t: t}
				waiting := next.begin(t.Context(), patient)
				var other *tab
				if elsewhere {
					other = open(t, n, locktest.NewSpace(), "B", "b")
					lease := other.acquire(patient)
					sleep(time.Minute)
					assert.Empty(t, waiting, "the other machine writes")
					other.release(lease)
				}
				require.NoError(t, <-waiting)
				assert.Equal(t, "A", n.held())
				select {
				case <-victim.Lost():
				default:
					assert.Fail(t, "the former holder got no event")
				}
				assert.GreaterOrEqual(t, time.Since(now), 30*time.Second)
				if !elsewhere {
					assert.Less(t, time.Since(now), 36*time.Second)
				}
				require.NoError(t, m.Close(context.Background()))
			})
		})
	}
}
