//go:build js && wasm

package opfs

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hack-pad/safejs"
)

func TestHandOverBetweenWorkers(t *testing.T) {
	root := newRoot()
	a, b, watcher := startPeer(t, root, safejs.Null()), startPeer(t, root, safejs.Null()), newClient(t, root)
	var times []time.Duration
	a.tell("request", "x")
	a.expect("granted")
	for range 30 {
		b.tell("request", "x")
		inLine(t, watcher, 1)
		begun := time.Now()
		a.tell("release", "x")
		b.expect("granted")
		times = append(times, time.Since(begun))
		a.expect("released")
		a, b = b, a
	}
	slices.Sort(times)
	t.Log("hand-over, release asked for to granted told: median", times[len(times)/2], "longest", times[len(times)-1])
}

func TestKilledHolderIsReplaced(t *testing.T) {
	root := newRoot()
	watcher := newClient(t, root)
	for range 5 {
		a, b := startPeer(t, root, safejs.Null()), startPeer(t, root, safejs.Null())
		a.tell("request", "x")
		a.expect("granted")
		b.tell("request", "x")
		inLine(t, watcher, 1)
		begun := time.Now()
		a.kill()
		b.expect("granted")
		t.Log("granted after", time.Since(begun))
		assert.Less(t, time.Since(begun), prompt)
		b.kill()
	}
}

func TestEightWorkersContend(t *testing.T) {
	const workers, each = 8, 20
	root, memory := newRoot(), shared()
	var peers []*peer
	for range workers {
		peers = append(peers, startPeer(t, root, memory))
	}
	begun := time.Now()
	for i, p := range peers {
		p.tell("churn", "x", "1", fmt.Sprint(i+1))
	}
	for _, p := range peers {
		p.expect("done")
	}
	t.Log("first round", time.Since(begun))
	begun = time.Now()
	for i, p := range peers {
		p.tell("churn", "x", fmt.Sprint(each), fmt.Sprint(i+1))
	}
	var longest, sum, n time.Duration
	most := 0
	for _, p := range peers {
		for range each {
			var us int64
			var others int
			_, err := fmt.Sscan(p.expect("waited"), &us, &others)
			require.NoError(t, err)
			waited := time.Duration(us) * time.Microsecond
			longest, sum, n = max(longest, waited), sum+waited, n+1
			most = max(most, others)
		}
	}
	assert.Less(t, most, 3*workers, "other waiters got the lock several times while one waited")
	mean := sum / n
	t.Logf("%d grants in %v; waited %v on average, %v at most, for %d others", n, time.Since(begun), mean, longest, most)
}
