// Package chaosserver checks that the lock table is linearizable while servers are killed, stopped and disconnected, that no acknowledged
// change is lost, that no event is sent twice, and that what a server keeps does not grow. It is the short form of make chaos-server,
// which raises the numbers.
package chaosserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
	"github.com/holdfast-dev/holdfast/server"
)

// The test binary is also the server: with these variables it serves until it is killed.
const (
	addrVariable = "CHAOS_SERVER_ADDR"
	dirVariable  = "CHAOS_SERVER_DIR"
	etcdVariable = "CHAOS_SERVER_ETCD"
)

func TestMain(m *testing.M) {
	addr := os.Getenv(addrVariable)
	if addr == "" {
		os.Exit(m.Run())
	}
	if err := serve(addr, os.Getenv(dirVariable), os.Getenv(etcdVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(addr, dir, etcd string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c := server.DefaultConfig()
	c.DataDir, c.Rate, c.NewRate, c.AddressRate = dir, 0, 0, 0
	c.LockTTL = time.Hour // locks do not expire here: the model stays simple, and every unexpected reply is a fault
	if etcd != "" {
		c.Etcd, c.Blobs = []string{etcd}, filepath.Join(dir, "blobs")
	}
	s, err := server.Start(ctx, c, nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); _ = listener.Close() }()
	_ = http.Serve(listener, s.Handler())
	return s.Close()
}

// node is one server, a process that the test can kill, stop and start again.
type node struct {
	addr, dir, etcd string

	mu      sync.Mutex
	process *exec.Cmd
}

func newNode(t *testing.T, dir, etcd string) *node {
	t.Helper()
	n := &node{addr: freeAddr(t), dir: dir, etcd: etcd}
	require.NoError(t, n.start())
	t.Cleanup(n.kill)
	return n
}

func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = exec.Command(os.Args[0])
	n.process.Env = append(os.Environ(), addrVariable+"="+n.addr, dirVariable+"="+n.dir, etcdVariable+"="+n.etcd)
	n.process.Stderr = os.Stderr
	return n.process.Start()
}

func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.process.Process.Kill()
	_ = n.process.Wait()
}

func (n *node) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.process.Process.Signal(s)
}

func (n *node) ready(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + n.addr + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 20*time.Second, 10*time.Millisecond)
}

// number is the amount of work of a test: small, unless the variable sets it.
func number(variable string, little int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return little
}

// tempDir returns an empty directory with a path short enough for a socket.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := loopback.FreePort()
	require.NoError(t, err)
	return "127.0.0.1:" + port
}
