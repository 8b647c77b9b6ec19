// Package dav runs WebDAV programs of other projects against the server. make test-dav installs them. Programs that take long or need
// root rights run with -full only.
package dav

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/servertest"
)

var full = flag.Bool("full", false, "run the programs that take long or need root rights, too")

// editor is a web editor, which uses the API.
type editor struct {
	t   *testing.T
	url string
}

// start runs a server.
func start(t *testing.T) editor {
	t.Helper()
	return editor{t, servertest.Start(t, servertest.Config(t)).URL}
}

func (e editor) do(method, path string) (status int, body []byte) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, nil)
	require.NoError(e.t, err)
	r.Header.Set("Authorization", "Bearer editor")
	response, err := http.DefaultClient.Do(r)
	require.NoError(e.t, err)
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	require.NoError(e.t, err)
	return response.StatusCode, body
}

func (e editor) content(document string) string {
	e.t.Helper()
	_, body := e.do("GET", "/api/documents/"+document+"/content")
	return string(body)
}

// awaitLock waits until somebody else holds the lock of a document, or nobody.
func (e editor) awaitLock(document string, held bool) {
	e.t.Helper()
	path := "/api/documents/" + document + "/lock"
	require.Eventually(e.t, func() bool {
		_, text := e.do("GET", path)
		var body struct {
			IsLocked bool `json:"is_locked"`
		}
		require.NoError(e.t, json.Unmarshal(text, &body))
		return body.IsLocked == held
	}, time.Minute, 20*time.Millisecond)
	if held {
		status, _ := e.do("POST", path)
		require.Equal(e.t, http.StatusConflict, status, "the editor may not write now")
	}
}

// program is a running program.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	out   *bytes.Buffer
}

func run(t *testing.T, name string, args ...string) program {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	p := program{t, cmd, nil, new(bytes.Buffer)}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	var err error
	p.input, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start(), "make test-dav installs it")
	return p
}

func (p program) say(lines ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.input, strings.Join(lines, "\n")+"\n")
	require.NoError(p.t, err)
}

// end waits for the program and returns its output.
func (p program) end() string {
	p.t.Helper()
	require.NoError(p.t, p.input.Close())
	err := p.cmd.Wait()
	require.NoError(p.t, err, p.out)
	return p.out.String()
}

// Litmus is a public test suite for WebDAV servers.
func TestLitmus(t *testing.T) {
	t.Parallel()
	out := run(t, "litmus", "-k", start(t).url+"/dav/", "ann", "secret").end()
	var got []string
	for _, m := range regexp.MustCompile("summary for `(\\w+)': of (\\d+) tests run: (\\d+) passed").FindAllStringSubmatch(out, -1) {
		got = append(got, strings.Join(m[1:], " "))
	}
	assert.Equal(t, []string{"basic 16 16", "copymove 13 13", "props 30 30", "locks 41 41", "http 4 4"}, got, out)
	assert.NotContains(t, out, "WARNING")
}

// Cadaver is a client at the command line, with locks.
func TestCadaver(t *testing.T) {
	t.Parallel()
	e := start(t)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("from the desk"), 0o600))
	p := run(t, "cadaver", e.url+"/dav/")
	p.say("mkcol notes")
	isCollection := func() bool { status, _ := e.do("GET", "/dav/notes/"); return status == http.StatusMethodNotAllowed }
	require.Eventually(t, isCollection, time.Minute, 20*time.Millisecond)
	e.awaitLock("notes~.plan", false) // MKCOL takes a lock for itself
	p.say("cd notes", "lock plan")
	e.awaitLock("notes~.plan", true)
	p.say("put "+text+" plan", "discover plan", "unlock plan", "propset plan color red", "propget plan color", "copy plan copy", "ls", "quit")
	out := p.end()
	e.awaitLock("notes~.plan", false)
	assert.Equal(t, "from the desk", e.content("notes~.plan"))
	assert.Equal(t, "from the desk", e.content("notes~.copy"))
	assert.NotContains(t, out, "failed", out)
}

// Davfs2 mounts the server as a folder. It locks a file while a program writes it.
func TestMount(t *testing.T) {
	if !*full {
		t.Skip("takes the right to mount: make test-dav")
	}
	e := start(t)
	dir, config := t.TempDir(), filepath.Join(t.TempDir(), "conf")
	require.NoError(t, os.WriteFile(config, []byte("ask_auth 0\ndelay_upload 0\n"), 0o600))
	run(t, "mount", "-t", "davfs", "-o", "conf="+config, e.url+"/dav/", dir).end()
	mounted := true
	defer func() {
		if mounted {
			_ = exec.Command("umount", "-i", dir).Run()
		}
	}()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "notes"), 0o700))
	f, err := os.Create(filepath.Join(dir, "notes", "my plan"))
	require.NoError(t, err)
	e.awaitLock("notes~.my~20plan", true)
	_, err = f.WriteString("from a folder")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	e.awaitLock("notes~.my~20plan", false)
	assert.Equal(t, "from a folder", e.content("notes~.my~20plan"))
	require.NoError(t, os.Rename(filepath.Join(dir, "notes"), filepath.Join(dir, "papers")))
	run(t, "umount", dir).end()
	mounted = false
	assert.Equal(t, "from a folder", e.content("papers~.my~20plan"))
}

// LibreOffice opens a file, and so locks it. It saves and closes it.
func TestLibreOffice(t *testing.T) {
	if !*full {
		t.Skip("LibreOffice is large: make test-dav")
	}
	e := start(t)
	script, err := filepath.Abs("testdata/office.py")
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", e.url+"/dav/plan.txt", strings.NewReader("before "))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	p := run(t, "/usr/bin/python3", script, e.url+"/dav/plan.txt")
	e.awaitLock("plan.txt", true)
	p.say("save")
	require.Eventually(t, func() bool { return strings.Contains(e.content("plan.txt"), "from the office") }, time.Minute, 50*time.Millisecond)
	e.awaitLock("plan.txt", true)
	p.say("close")
	e.awaitLock("plan.txt", false)
	p.end()
	status, _ := e.do("POST", "/api/documents/plan.txt/lock")
	assert.Equal(t, http.StatusOK, status, "now the editor may write")
}
