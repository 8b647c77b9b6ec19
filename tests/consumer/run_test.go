package consumer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs a program in dir and returns its output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, failed.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

func sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
