package e2e

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// binary builds the server, with the site it carries, once for all tests that run it.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.cache/holdfast-e2e")
	if err != nil {
		return "", err
	}
	return path, exec.Command("go", "build", "-o", path, "../../cmd/holdfast").Run()
})

// A serving is a running "holdfast serve".
type serving struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	url  string
}

// serve runs the server on a data directory of its own, until the test ends.
func serve(t *testing.T, flags ...string) *serving {
	t.Helper()
	s := &serving{t: t, args: append([]string{"serve", "--data-dir", t.TempDir()}, flags...)}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

func (s *serving) start(address string) {
	s.t.Helper()
	path, err := binary()
	require.NoError(s.t, err, "the server does not build; run make test-e2e")
	s.cmd = exec.Command(path, append(s.args, "--addr", address)...)
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s.t, err, "the server did not say that it is ready")
	s.url = regexp.MustCompile(`http://localhost:\d+`).FindString(line)
	require.NotEmpty(s.t, s.url, line)
}

// stop ends the server as an operator does.
func (s *serving) stop() {
	if s.cmd == nil {
		return
	}
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(s.t, s.cmd.Wait())
	s.cmd = nil
}

// kill ends the server without any warning.
func (s *serving) kill() {
	require.NoError(s.t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.cmd = nil
}

// profiles starts as many browsers, each a profile of its own: they share nothing but the server.
func profiles(t *testing.T, count int) []*browser.Browser {
	t.Helper()
	list := make([]*browser.Browser, count)
	for i := range list {
		list[i] = browser.Start(t, browser.Options{})
	}
	return list
}
