package members

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Three members of a former version are stopped one after the other and go on as this version, while clients work: also
// in the time in which the cluster has both. The lock is not lost, nor is a place in line or an acknowledged content.
func TestUpgradeOneMemberAfterTheOther(t *testing.T) {
	former := os.Getenv("HOLDFAST_FORMER")
	if former == "" {
		t.Skip("make upgrade builds a former version and runs it")
	}
	c := emptyCluster(t)
	var join []string
	for range 3 {
		host := ownHost(t)
		m := c.add(host, "--peer-url", "http://"+host+":2380") // flags that every version has
		m.in(join...)
		m.Program = former
		m.Start(m.addr)
		join = []string{"--join", c.members[0].client}
	}
	c.serve()
	w := begin(t, c.proxy.URL, 10*time.Minute)
	w.goOn()
	for i, m := range c.members {
		m.Stop()
		c.notices(i)
		w.goOn()
		m.Program = "" // this version
		m.Start(m.addr)
		c.ready()
		w.goOn()
	}
	require.NoError(t, w.lease.Err())
	w.end()
	t.Logf("%d answers that clients had to repeat", c.proxy.failed.Load())
}
