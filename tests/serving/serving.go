// Package serving runs "holdfast serve" as a separate process for tests, and wires to it that a test can cut.
package serving

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// binary builds the server once for all tests of a package.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.cache/holdfast-tests")
	if err != nil {
		return "", err
	}
	return path, exec.Command("go", "build", "-o", path, "../../cmd/holdfast").Run()
})

// Binary returns the path of the server's program with its site, and builds it if anything has changed.
func Binary(t *testing.T) string {
	t.Helper()
	path, err := binary()
	require.NoError(t, err, "the server does not build; run make build")
	return path
}

// A Server is a running "holdfast serve". Its methods fail the test on an error.
type Server struct {
	URL     string // of the last start
	Program string // of the next start; empty is [Binary]

	t    *testing.T
	args []string
	cmd  *exec.Cmd
}

// Run starts a server with these flags on a free port. The end of the test stops it.
func Run(t *testing.T, flags ...string) *Server {
	t.Helper()
	s := New(t, flags...)
	s.Start("127.0.0.1:0")
	t.Cleanup(s.Stop)
	return s
}

// New returns a server with these flags that the test starts, and stops or kills.
func New(t *testing.T, flags ...string) *Server {
	return &Server{t: t, args: append([]string{"serve", "--drain", "0s"}, flags...)}
}

// Start starts a stopped or killed server, and returns when it reports that it is ready.
func (s *Server) Start(address string) {
	s.t.Helper()
	program := s.Program
	if program == "" {
		program = Binary(s.t)
	}
	s.cmd = exec.Command(program, append(s.args, "--addr", address)...)
	var log bytes.Buffer
	s.cmd.Stderr = &log
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		s.Kill() // the log is complete then
		require.NoError(s.t, err, "the server did not say that it is ready: "+log.String())
	}
	s.URL = regexp.MustCompile(`http://localhost:\d+`).FindString(line)
	require.NotEmpty(s.t, s.URL, line)
}

// Address returns the address on which the server listens or last listened, so that another start can reuse it.
func (s *Server) Address() string {
	return strings.Replace(s.URL, "http://localhost", "127.0.0.1", 1)
}

// Stop ends the server as an operator does.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(s.t, s.cmd.Wait())
	s.cmd = nil
}

// Kill ends the server without warning.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	require.NoError(s.t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Signal sends the process a signal. It returns from SIGSTOP when the process has stopped: on a busy machine, that may take half a second, in
// which the server answers.
func (s *Server) Signal(signal os.Signal) {
	require.NoError(s.t, s.cmd.Process.Signal(signal))
	if signal != syscall.SIGSTOP {
		return
	}
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(s.cmd.Process.Pid, nil, syscall.WUNTRACED, nil)
	}
	require.NoError(s.t, err)
}
