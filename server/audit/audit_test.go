package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// check is the command of docs/operations.md, which uses no code of this project.
func check(t *testing.T, path string) error {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "```text\nprev=")
	require.True(t, ok, "the command is documented")
	script, _, _ := strings.Cut("prev="+rest, "```")
	require.Contains(t, script, "audit.log")
	out, err := exec.Command("sh", "-c", strings.ReplaceAll(script, "audit.log", path)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func TestChainHoldsAndShowsWhatWasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for range 2 { // a restart goes on with the chain
		l, err := Open(path)
		require.NoError(t, err)
		var writing sync.WaitGroup
		for i := range 10 {
			writing.Go(func() {
				assert.NoError(t, l.Write(Entry{Event: Break, User: `a "b" \ é`, Reason: strings.Repeat("why\n", i*5000)}, i == 0))
			})
		}
		writing.Wait()
		require.NoError(t, l.Close())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, check(t, path))

	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 20)
	for name, changed := range map[string][]string{
		"changed": append([]string{strings.Replace(lines[0], "break", "broke", 1)}, lines[1:]...),
		"removed": append(lines[:5:5], lines[6:]...),
		"swapped": append([]string{lines[1], lines[0]}, lines[2:]...),
		"first":   lines[1:],
	} {
		other := filepath.Join(t.TempDir(), "audit.log")
		require.NoError(t, os.WriteFile(other, []byte(strings.Join(changed, "")), 0o600))
		assert.Error(t, check(t, other), name)
	}
}

// begun opens a new log with one entry.
func begun(t *testing.T) (path string, l *Log) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(Entry{Event: Refused}, true))
	return path, l
}

// A crash cut the last line off: it stays as it is, and the chain goes on over it.
func TestCutLineIsPartOfTheChain(t *testing.T) {
	path, l := begun(t)
	require.NoError(t, l.Close())
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(file, `{"prev":"%s","at`, l.prev)
	require.NoError(t, err)
	require.NoError(t, file.Close())

	l, err = Open(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(Entry{Event: SignedIn}, true))
	require.NoError(t, l.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(text), "\n"))
	require.NoError(t, check(t, path))
}

// fullFile is a file that may only grow, on a disk that has room for one more piece of a line.
type fullFile struct{ *os.File }

func (f fullFile) Write(text []byte) (int, error) {
	n, err := f.File.Write(text[:len(text)*3/4])
	return n, errors.Join(err, syscall.ENOSPC)
}

func (fullFile) Truncate(int64) error { return syscall.EPERM }

// A full disk cuts a line off, and the operator has made the file append-only: the piece stays, and the chain goes on over it.
func TestPieceThatCannotBeRemovedIsPartOfTheChain(t *testing.T) {
	path, l := begun(t)
	whole := l.file.(*os.File)
	for range 2 {
		l.file = fullFile{whole}
		require.ErrorIs(t, l.Write(Entry{Event: Break}, true), syscall.EPERM)
		l.file = whole // the disk has room again
		require.NoError(t, l.Write(Entry{Event: SignedIn}, true))
	}
	require.NoError(t, l.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 5, strings.Count(string(text), "\n"), "%s", text)
	require.NoError(t, check(t, path))
}

// The file is renamed before another entry has followed such a piece. The chain goes on over it in the new file.
func TestPieceAtTheEndOfARenamedFileIsPartOfTheChain(t *testing.T) {
	path, l := begun(t)
	whole := l.file.(*os.File)
	l.file = fullFile{whole}
	require.ErrorIs(t, l.Write(Entry{Event: Break}, true), syscall.EPERM)
	l.file = whole
	require.NoError(t, os.Rename(path, path+".1"))
	require.NoError(t, l.Reopen())
	require.NoError(t, l.Write(Entry{Event: SignedIn}, true))
	require.NoError(t, l.Close())
	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	both := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(both, slices.Concat(before, []byte("\n"), after), 0o600)) // the former file ends within a line
	require.NoError(t, check(t, both))
}

// A program that rotates logs renames the file and tells the server. The chain goes on in the new file.
func TestChainGoesOnInANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path)
	require.NoError(t, err)
	write := func(reason string) { require.NoError(t, l.Write(Entry{Event: Break, Reason: reason}, false)) }
	write("one")
	require.NoError(t, l.Reopen(), "nothing has been renamed")
	write("two")
	require.NoError(t, os.Rename(path, path+".1"))
	write("three")
	require.NoError(t, l.Reopen())
	write("four")
	write("five")

	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(before), "\n"))
	assert.Equal(t, 2, strings.Count(string(after), "\n"))
	both := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(both, append(before, after...), 0o600))
	require.NoError(t, check(t, both))

	require.NoError(t, os.Rename(path, path+".2"))
	require.NoError(t, os.Mkdir(path, 0o700))
	require.ErrorContains(t, l.Reopen(), path)
	write("six")
	kept, err := os.ReadFile(path + ".2")
	require.NoError(t, err)
	assert.Contains(t, string(kept), "six", "the log goes on in the former file if the new one cannot be opened")
	require.NoError(t, l.Close())
}

// Two servers of one machine have the same configuration. The second does not start, as their chains would break each other.
func TestOneServerPerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	first, err := Open(path)
	require.NoError(t, err)
	_, err = Open(path)
	require.ErrorContains(t, err, path+" cannot be used: it is in use by another server")
	require.NoError(t, first.Write(Entry{Event: Break}, true))
	require.NoError(t, first.Close())
	second, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	for range 2 {
		shared, err := Open(os.DevNull)
		require.NoError(t, err)
		defer func() { assert.NoError(t, shared.Close()) }()
	}
}
