package docs

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
)

// binary builds the server, with the site it carries, once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.cache/holdfast-docs")
	if err != nil {
		return "", err
	}
	return path, exec.Command("go", "build", "-o", path, "../../cmd/holdfast").Run()
})

// serve runs "holdfast serve" with a store of its own until the test ends, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	path, err := binary()
	require.NoError(t, err, "the server does not build; run make build")
	cmd := exec.Command(path, "serve", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the server did not say that it is ready")
	address := regexp.MustCompile(`http://localhost:\d+`).FindString(line)
	require.NotEmpty(t, address, line)
	return address
}
