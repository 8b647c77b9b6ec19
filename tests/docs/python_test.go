package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// The example in Python passes the scenarios of a lock manager, with the standard library alone.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python 3 on this machine")
	}
	s := serving.Run(t, "--data-dir", t.TempDir())
	examples, err := filepath.Abs("../../docs/examples")
	require.NoError(t, err)
	// -I leaves out installed packages and the environment of Python, -S the site; the path of the example is added by hand.
	cmd := exec.Command(python, "-I", "-S", "-B", "-c",
		"import sys; sys.path[:0] = sys.argv[1:3]; sys.argv[1:] = ['-v']; import unittest; unittest.main(module='lock_manager_test')", examples, "testdata")
	cmd.Env = append(os.Environ(), "HOLDFAST_SERVER=http://"+s.Address(), "SCENARIO=go-test")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
