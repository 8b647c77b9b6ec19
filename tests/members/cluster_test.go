// Package members checks three members behind a proxy, as docs/operations.md describes them: any one may be killed, cut
// off or replaced, and clients notice at most a retry. It is the short form of make chaos-members.
package members

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// member is one "holdfast serve" with its addresses, which stay when its files are lost.
type member struct {
	*serving.Server
	t      *testing.T
	addr   string // for the proxy
	client string // the URL for those that join
	flags  []string
}

// cluster is three members on one directory of contents, with a network between them and a proxy before them.
type cluster struct {
	t        *testing.T
	contents string // their directory
	network  *network
	proxy    *balancer
	members  []*member
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := emptyCluster(t)
	for range 3 {
		host := ownHost(t)
		m := c.add(host, "--peer-url", c.network.open(t, host+":2380"), "--peer-addr", host+":2380")
		m.create(c.members[0].client)
	}
	c.serve()
	return c
}

func emptyCluster(t *testing.T) *cluster {
	return &cluster{t: t, contents: t.TempDir(), network: newNetwork(), proxy: newBalancer(t)}
}

// add adds a member at a host, which the test creates.
func (c *cluster) add(host string, flags ...string) *member {
	m := &member{t: c.t, addr: host + ":8080", client: "http://" + host + ":2379"}
	m.flags = append(flags, "--client-url", m.client, "--blobs", c.contents, "--rate", "0", "--new-rate", "0", "--address-rate", "0")
	c.members = append(c.members, m)
	c.proxy.add(m.addr)
	return m
}

// serve makes the proxy work, and waits for all members.
func (c *cluster) serve() {
	c.t.Helper()
	watching, stop := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.proxy.watch(watching) })
	c.t.Cleanup(func() { stop(); running.Wait() })
	c.ready()
}

// create starts the member with an empty directory. The first one founds the cluster: it ignores its own address.
func (m *member) create(join string) {
	m.t.Helper()
	m.in("--join", join)
	m.Start(m.addr)
}

// in gives the member an empty directory and further flags for its starts.
func (m *member) in(flags ...string) {
	m.t.Helper()
	m.Server = serving.New(m.t, slices.Concat(m.flags, []string{"--data-dir", shortDir(m.t)}, flags)...)
	m.t.Cleanup(m.Kill)
}

// shortDir returns an empty directory with a path short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "members")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// kill ends a member without warning, and runs it again when the others have worked.
func (c *cluster) kill(i int, work func()) {
	c.members[i].Kill()
	c.notices(i)
	work()
	c.members[i].Start(c.members[i].addr)
}

// cut disconnects a member from the other members, but not from the proxy, until the others have worked.
func (c *cluster) cut(i int, work func()) {
	c.network.cut(i)
	c.notices(i)
	work()
	c.network.heal()
}

// replace kills a member and deletes its files. When the others have worked, it joins them again, with an empty
// directory and the same addresses.
func (c *cluster) replace(i int, work func()) {
	c.members[i].Kill()
	c.notices(i)
	work()
	c.members[i].create(c.members[(i+1)%len(c.members)].client)
}

// notices waits until the proxy sees that a member is not ready. Clients work all the time.
func (c *cluster) notices(i int) {
	require.Eventually(c.t, func() bool { return !c.proxy.backends[i].ready.Load() }, patience, 20*time.Millisecond)
}

// ready waits until the proxy passes requests to all members.
func (c *cluster) ready() {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.proxy.ready() == len(c.members) }, patience, 20*time.Millisecond)
}

// ownHost returns a loopback address that nothing else uses, so that its ports are free at each start of a member. Ports
// of 127.0.0.1 are not: meanwhile any program may connect from one.
func ownHost(t *testing.T) string {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 64+rand.N(63), rand.N(256), 1+rand.N(254))
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Skipf("this system has no loopback addresses of the kind %s: %v", host, err)
	}
	require.NoError(t, l.Close())
	return host
}

// serveOn serves a handler until the test ends, and returns its URL.
func serveOn(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	t.Cleanup(func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String()
}
