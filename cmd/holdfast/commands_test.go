package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
)

// terminal is a shell of a user, without a real terminal.
type terminal struct {
	t   *testing.T
	env []string
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// serveUsers starts a server on which the key of a user is their name and "-key". Root may break locks.
func serveUsers(t *testing.T, flags ...string) (*process, func(user string) terminal) {
	t.Helper()
	dir, keys := t.TempDir(), ""
	for _, name := range []string{"ann", "bob", "root"} {
		keys += fmt.Sprintf("%s sha256:%x\n", name, sha256.Sum256([]byte(name+"-key")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys"), []byte(keys), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "policy"), []byte("user:root * admin\nsigned-in documents/hidden\nsigned-in * read lock write\n"), 0o600))
	p := serveInProcess(t, append(flags, "--api-keys", filepath.Join(dir, "keys"), "--policy", filepath.Join(dir, "policy"))...)
	return p, func(user string) terminal {
		return terminal{t, []string{"HOLDFAST_SERVER=http://" + p.addr, "HOLDFAST_API_KEY=" + user + "-key"}}
	}
}

// start begins a command. Its output can be read when it has ended.
func (u terminal) start(stdin string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	u.t.Helper()
	cmd, stdout, stderr := u.prepare(stdin, args...)
	require.NoError(u.t, cmd.Start())
	u.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, stdout, stderr
}

func (u terminal) prepare(stdin string, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	cmd := exec.Command(os.Args[0], args...)
	// The shell that a test starts finds holdfast as "$HOLDFAST".
	cmd.Env = append(append(os.Environ(), asCommand+"=yes", "GORACE=atexit_sleep_ms=0", "HOLDFAST="+os.Args[0]), u.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	return cmd, &stdout, &stderr
}

func (u terminal) run(stdin string, args ...string) result {
	u.t.Helper()
	cmd, stdout, stderr := u.start(stdin, args...)
	return result{ended(u.t, cmd), stdout.String(), stderr.String()}
}

// ended waits for the end of a command and returns its exit code.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	watch := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	require.True(t, watch.Stop(), "the command did not end")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode()
}

func fileIn(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

const soon = 30 * time.Second

func TestLockRunsAProgram(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	ann := as("ann")
	done := ann.run("text", "lock", "plan", "--wait", "10s", "--", "sh", "-c", `"$HOLDFAST" put plan && cat && echo "$HOLDFAST_TOKEN" && exit 7`)
	assert.Equal(t, 7, done.code, done.stderr)
	lines := strings.Split(strings.TrimSpace(done.stdout), "\n")
	require.Len(t, lines, 2, done.stdout)
	assert.Regexp(t, `^"`, lines[0], "the ETag")
	assert.Regexp(t, `^[1-9]\d*$`, lines[1])
	assert.Empty(t, done.stderr)
	assert.Equal(t, "text", as("bob").run("", "cat", "plan").stdout)

	assert.Equal(t, 0, ann.run("", "lock", "plan", "/pool/a%20b", "--wait=0", "--", "true").code)
	assert.Equal(t, exitSignal+9, ann.run("", "lock", "plan", "--wait", "0", "--", "sh", "-c", "kill -9 $$").code)
	assert.Equal(t, exitNotFound, ann.run("", "lock", "plan", "--", "no-such-program").code)
	assert.Equal(t, exitCannotRun, ann.run("", "lock", "plan", "--", t.TempDir()).code)
}

// A program under a lock speaks to the server as the command that has the lock, also from another folder.
func TestProgramUnderALockKnowsTheServer(t *testing.T) {
	t.Parallel()
	p, _ := serveUsers(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("ann-key\n"), 0o600))
	cmd, _, stderr := terminal{t: t}.prepare("text", "lock", "plan", "--server", "http://"+p.addr, "--api-key-file", "key", "--", "sh", "-c", `cd / && "$HOLDFAST" put plan`)
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	assert.Equal(t, 0, ended(t, cmd), stderr.String())
}

func TestLockExcludesOthers(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	marker, end := fileIn(t, "marker"), fileIn(t, "end")
	holds, _, stderr := as("ann").start("", "lock", "plan", "--", "sh", "-c", `touch "$0"; while [ ! -e "$1" ]; do sleep 0.05; done`, marker, end)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)

	for _, user := range []string{"ann", "bob"} { // the same key in another program, too
		denied := as(user).run("", "lock", "--wait", "0", "plan", "--", "touch", fileIn(t, "never"))
		assert.Equal(t, exitFailed, denied.code)
		assert.Contains(t, denied.stderr, "acquire_denied")
		assert.Equal(t, 42, as(user).run("", "lock", "plan", "--wait", "100ms", "--conflict-exit-code", "42", "--", "true").code)
	}
	list := as("bob").run("", "locks", "plan")
	assert.Regexp(t, `(?m)^holds +ann +exclusive .* documents/plan`, list.stdout)
	assert.Contains(t, as("bob").run("", "locks", "--json").stdout, `"holder_name":"ann"`)
	put := as("bob").run("x", "put", "plan")
	assert.Equal(t, exitFailed, put.code)

	waiting, stdout, _ := as("bob").start("", "lock", "plan", "--", "echo", "my turn")
	require.Eventually(t, func() bool { return strings.Contains(as("bob").run("", "locks", "plan").stdout, "waits") }, soon, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	assert.Equal(t, 0, ended(t, holds), stderr.String())
	assert.Equal(t, 0, ended(t, waiting))
	assert.Equal(t, "my turn\n", stdout.String())
}

// When the lock is lost, the program and what it has started end.
func TestLostLockEndsTheProgram(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	// The grandchild writes on until it is ended, for a minute at most.
	const grandchild = `for i in $(seq 1200); do echo x >> "$0"; sleep 0.05; done`
	for name, script := range map[string]string{
		"at SIGTERM":                 `(` + grandchild + `) & wait; wait`,
		"at SIGKILL":                 `trap "" TERM; (` + grandchild + `) & wait; wait`,
		"before what it has started": `(trap "" TERM; ` + grandchild + `) </dev/null >/dev/null 2>&1 & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker, doc := fileIn(t, "marker"), strings.ReplaceAll(name, " ", "-")
			cmd, _, stderr := as("ann").start("", "lock", doc, "--ttl", "6s", "--grace", "200ms", "--", "sh", "-c", script, marker)
			require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
			assert.Equal(t, exitRefused, as("bob").run("", "break", doc, "--reason", "mine").code)
			broken := as("root").run("", "break", doc, "--reason", "maintenance")
			require.Equal(t, 0, broken.code, broken.stderr)
			assert.Equal(t, exitLost, ended(t, cmd), stderr.String())
			assert.Contains(t, stderr.String(), "lease_lost")
			size := func() int64 { i, err := os.Stat(marker); require.NoError(t, err); return i.Size() }
			last := int64(-1)
			require.Eventually(t, func() bool { now := size(); same := now == last; last = now; return same }, soon, 300*time.Millisecond)
		})
	}
}

func TestSignalsReachTheProgram(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	marker := fileIn(t, "marker")
	cmd, stdout, stderr := as("ann").start("", "lock", "plan", "--", "sh", "-c", `trap 'echo saved; exit 3' TERM; touch "$0"; while :; do sleep 0.05; done`, marker)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 3, ended(t, cmd), stderr.String())
	assert.Equal(t, "saved\n", stdout.String())
	assert.Equal(t, 0, as("bob").run("", "lock", "plan", "--wait", "0", "--", "true").code, "it has been released")
}

// Nobody renews the lock of a program whose holdfast was killed, so the program ends too.
func TestProgramEndsWithHoldfast(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system has no signal for the end of a parent")
	}
	_, as := serveUsers(t)
	marker, end := fileIn(t, "marker"), fileIn(t, "end")
	cmd, _, _ := as("ann").start("", "lock", "plan", "--", "sh", "-c", `trap 'touch "$1"; exit' TERM; touch "$0"; while :; do sleep 0.05; done`, marker, end)
	require.Eventually(t, exists(marker), soon, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Eventually(t, exists(end), soon, 10*time.Millisecond)
}

func TestSignalEndsTheWait(t *testing.T) {
	t.Parallel()
	p, as := serveUsers(t)
	c, err := client.New(client.Config{URL: "http://" + p.addr, Key: "bob-key"})
	require.NoError(t, err)
	lease, err := c.Acquire(t.Context(), client.Request{Document: "plan"})
	require.NoError(t, err)
	cmd, _, stderr := as("ann").start("", "lock", "plan", "--", "true")
	require.Eventually(t, func() bool {
		list, err := c.Locks(t.Context(), "documents")
		return err == nil && len(list.Waiters) == 1
	}, soon, 10*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, exitSignal+int(syscall.SIGINT), ended(t, cmd))
	assert.Contains(t, stderr.String(), "aborted")
	require.Eventually(t, func() bool {
		list, err := c.Locks(t.Context(), "documents")
		return err == nil && len(list.Waiters) == 0
	}, soon, 10*time.Millisecond)
	require.NoError(t, lease.Release(context.Background()))
	require.NoError(t, c.Close(context.Background()))
}

func TestContentsFromTheShell(t *testing.T) {
	t.Parallel()
	_, as := serveUsers(t)
	ann := as("ann")
	first := ann.run("one", "put", "plan", "--if-absent")
	require.Equal(t, 0, first.code, first.stderr)
	assert.Equal(t, exitFailed, ann.run("x", "put", "plan", "--if-absent").code)
	second := ann.run("two\x00", "put", "--if-match", strings.TrimSpace(first.stdout), "plan")
	require.Equal(t, 0, second.code, second.stderr)
	assert.Equal(t, "two\x00", ann.run("", "cat", "plan").stdout)
	history := strings.Split(strings.TrimSpace(ann.run("", "cat", "plan", "--history").stdout), "\n")
	require.Len(t, history, 3)
	assert.Equal(t, "one", ann.run("", "cat", "plan", "--generation", strings.Fields(history[2])[0]).stdout)

	missing := ann.run("", "cat", "nothing")
	assert.Equal(t, exitFailed, missing.code)
	assert.Contains(t, missing.stderr, "read the document nothing")
	stale := ann.run("x", "put", "plan", "--token", "1", "--session", "s")
	assert.Equal(t, exitFailed, stale.code)
	assert.Contains(t, stale.stderr, "not_locked_by_user")
}

// The key comes from the environment or from a file. No output shows it.
func TestKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	p, as := serveUsers(t)
	file := fileIn(t, "key")
	require.NoError(t, os.WriteFile(file, []byte("ann-key\n"), 0o600))
	from := terminal{t, []string{"HOLDFAST_API_KEY_FILE=" + file}}
	ok := from.run("", "lock", "plan", "--server", "http://"+p.addr, "--wait", "0", "--", "true")
	assert.Equal(t, 0, ok.code, ok.stderr)
	for _, r := range []result{
		as("eve").run("", "cat", "plan"), as("eve").run("", "lock", "plan", "--", "true"), as("ann").run("", "cat", "hidden"),
	} {
		assert.Equal(t, exitRefused, r.code)
		assert.NotContains(t, r.stdout+r.stderr, "-key")
	}
	gone := terminal{t, []string{"HOLDFAST_API_KEY=eve-key", "HOLDFAST_PATIENCE=100ms"}}.run("", "cat", "plan", "--server", "http://127.0.0.1:1")
	assert.Equal(t, exitUnreachable, gone.code)
	assert.NotContains(t, gone.stderr, "eve-key")
	for _, c := range commands() {
		help := as("ann").run("", c.name, "-h")
		assert.Equal(t, 0, help.code)
		assert.Contains(t, help.stderr, "Usage: holdfast "+c.name)
		assert.NotContains(t, help.stderr, "ann-key")
	}
}

func TestVersion(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"version"}, site, &out, io.Discard))
	assert.Regexp(t, `^holdfast \S+ \w+/\w+ go1\.`, out.String())
}

func TestWrongUsageOfCommands(t *testing.T) {
	for _, args := range [][]string{
		{"lock"}, {"lock", "plan"}, {"lock", "plan", "--"}, {"lock", "--", "true"}, {"cat"}, {"cat", "a", "b"}, {"put"}, {"version", "x"}, {"lock", "plan", "--nonsense", "--", "true"},
	} {
		var stderr strings.Builder
		assert.ErrorIs(t, run(t.Context(), args, site, io.Discard, &stderr), errUsage, args)
		assert.NotEmpty(t, stderr.String(), args)
	}
	for _, args := range [][]string{{"break", "plan"}, {"break", "--reason", "x"}, {"completion", "fish"}, {"lock", "a//b", "--", "true"}} {
		assert.Error(t, run(t.Context(), args, site, io.Discard, io.Discard), args)
	}
}

// Anybody may lock a place with any name. It must not look like another one, or like another holder's.
func TestListingShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	hostile := client.Holder{HolderName: "ann", Paths: [][]string{{"pool", "\u202enalp", "a\u200bb", "c\x1b[2J", "é 日本"}}}
	require.NoError(t, printLocks(&out, client.Listing{Holders: []client.Holder{hostile}}))
	assert.Contains(t, out.String(), "pool/?nalp/a?b/c?[2J/é 日本")
}
