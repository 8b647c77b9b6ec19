package members

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Three members behind a proxy: one is killed, one is cut off, one is replaced. The lock is not lost, no acknowledged
// content is lost, each event comes once, and no operation of a client fails.
func TestMembersBehindAProxy(t *testing.T) {
	c := newCluster(t)
	w := begin(t, c.proxy.URL, 10*time.Minute) // however slow this machine is, the lock does not run out
	w.goOn()
	for i, fault := range []func(int, func()){c.kill, c.cut, c.replace} {
		fault(i, w.goOn)
		c.ready()
	}
	w.goOn()
	w.end()
	t.Logf("%d answers that clients had to repeat", c.proxy.failed.Load())
}

// The long form: each member is killed, cut off and replaced, with the default time to live of a lock.
func TestEveryMemberBehindAProxy(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("MEMBER_ROUNDS"))
	if err != nil {
		t.Skip("make chaos-members runs it")
	}
	c := newCluster(t)
	w := begin(t, c.proxy.URL, 0)
	for range rounds {
		for i := range c.members {
			for _, fault := range []func(int, func()){c.kill, c.cut, c.replace} {
				w.goOn()
				fault(i, w.goOn)
				c.ready()
			}
		}
	}
	require.NoError(t, w.lease.Err())
	w.end()
	t.Logf("%d answers that clients had to repeat", c.proxy.failed.Load())
}
