package server_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/backup"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

const backupRules = "user:root * admin\nanyone * read lock write\n"

// writers save documents until they are stopped, and remember what was acknowledged.
type writers struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	saves   atomic.Int64
	mu      sync.Mutex
	newest  map[string]int   // the number of the latest acknowledged save, by document
	tokens  map[string]int64 // of the latest lock
}

const (
	saveSize  = 32 << 10
	documents = 6
)

func textOf(document string, number int) string {
	text := fmt.Sprintf("%s %d ", document, number)
	return text + strings.Repeat("x", saveSize-len(text))
}

// work saves the documents of one writer in turn, each a few times under one lock.
func (w *writers) work(ctx context.Context, c client) {
	for number := 1; ctx.Err() == nil; number++ {
		document := fmt.Sprintf("%s-%d", c.secret, number%documents)
		a, err := c.try(ctx, "POST", lockOf(document), nil)
		if err != nil || !assert.Equal(c.t, http.StatusOK, a.status, string(a.text)) {
			return
		}
		saved, err := c.with(remote.HeaderToken, fmt.Sprint(a.token())).try(ctx, "PUT", contentOf(document), textOf(document, number))
		if err != nil || !assert.Equal(c.t, http.StatusOK, saved.status, string(saved.text)) {
			return
		}
		w.mu.Lock()
		w.newest[document], w.tokens[document] = number, a.token()
		w.mu.Unlock()
		w.saves.Add(1)
		_, _ = c.try(ctx, "DELETE", lockOf(document), nil)
	}
}

func (w *writers) acknowledged() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := map[string]int{}
	for document, number := range w.newest {
		list[document] = number
	}
	return list
}

// makes waits until so many more saves are acknowledged.
func (w *writers) makes(t *testing.T, n int64) {
	t.Helper()
	until := w.saves.Load() + n
	require.Eventually(t, func() bool { return w.saves.Load() >= until }, 30*time.Second, time.Millisecond)
}

func beginWriting(t *testing.T, s *instance) *writers {
	ctx, stop := context.WithCancel(t.Context())
	w := &writers{stop: stop, newest: map[string]int{}, tokens: map[string]int64{}}
	for _, user := range []string{"ann-key", "bob-key"} {
		w.running.Go(func() { w.work(ctx, s.as(t, user)) })
	}
	return w
}

// slowly reads an archive while the writers go on: after each of the first contents, they make more saves. The limits
// of the listener are much shorter than the whole transfer.
func (w *writers) slowly(t *testing.T, s *instance) []byte {
	t.Helper()
	impatient := httptest.NewUnstartedServer(s.Handler())
	impatient.Config.ReadTimeout, impatient.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	impatient.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10) // so that the server does not get ahead of the reader
		return ctx
	}
	impatient.Start()
	defer impatient.Close()
	response := backupFrom(t, impatient.URL)
	defer response.Body.Close()
	begun := time.Now()
	var archive bytes.Buffer
	from := io.TeeReader(response.Body, &archive)
	files := tar.NewReader(from)
	for contents := 0; ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if strings.HasPrefix(file.Name, "blobs/") {
			if contents == 0 {
				assertError(t, s.as(t, "root-key").do("GET", "/api/backup", nil), http.StatusConflict, "backup_running")
				assert.Equal(t, http.StatusOK, s.as(t, "root-key").do("HEAD", "/api/backup", nil).status, "HEAD makes no backup")
			}
			if contents++; contents < 10 || time.Since(begun) < time.Second {
				w.makes(t, 2*documents)
			}
		}
	}
	_, err := io.Copy(io.Discard, from)
	require.NoError(t, err)
	return archive.Bytes()
}

func restored(t *testing.T, archive []byte, change func(*server.Config)) *instance {
	t.Helper()
	dir := kvtest.Dir(t)
	sum, err := backup.Restore(t.Context(), bytes.NewReader(archive), dir, "", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, append(sum.Missing, sum.Changed...))
	return start(t, func(c *server.Config) {
		change(c)
		c.DataDir = dir
	})
}

// A backup of a server at work has every save that was acknowledged before it began. After a restore, tokens and
// revisions are above all that clients have seen of the lost server.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	change := func(c *server.Config) {
		c.APIKeys = writeFile(t, keyLine("root", "")+keyLine("ann", "")+keyLine("bob", ""))
		c.Policy, c.LockTTL = writeFile(t, backupRules), 6*time.Second
		c.Keep, c.Sweep = 2, 10*time.Millisecond // a dropped generation is deleted at once
		servertest.Unlimit(c)
	}
	s := start(t, change)
	w := beginWriting(t, s)
	w.makes(t, 4*documents)
	require.Eventually(t, func() bool { return len(w.acknowledged()) == 2*documents }, 30*time.Second, time.Millisecond)
	before := w.acknowledged()
	archive := w.slowly(t, s)
	w.stop()
	w.running.Wait()
	require.Eventually(t, func() bool {
		left, err := s.Store().Keys(t.Context(), "garbage/")
		require.NoError(t, err)
		return len(left) == 0
	}, 30*time.Second, 10*time.Millisecond, "after the backup, dropped generations are deleted again")
	left, err := s.Store().Keys(t.Context(), "holds/")
	require.NoError(t, err)
	assert.Empty(t, left)
	s.Stop(t) // its disk is lost

	again := restored(t, archive, change)
	ann := again.as(t, "ann-key")
	for document, number := range before {
		assertRestored(t, ann, document, number)
		bob := again.as(t, "root-key")
		granted := bob.do("POST", lockOf(document)+"?wait_ms=20000", nil)
		require.Equal(t, http.StatusOK, granted.status, string(granted.text))
		assert.Greater(t, granted.token(), w.tokens[document], document)
		require.Equal(t, http.StatusOK, bob.save(document, granted.token(), "after").status)
	}
	_, revision, err := again.Store().Get(t.Context(), "x")
	require.NoError(t, err)
	for document, token := range w.tokens {
		assert.Greater(t, revision, token+1_000_000)
		resumed := again.events(t, document, fmt.Sprint("?after=", token)).next()
		assert.Equal(t, remote.NoticeState, resumed["type"], "the events after the backup are unknown")
	}
}

// assertRestored checks that a document has the save with this number or a later one, and that each of its generations can be read.
func assertRestored(t *testing.T, ann client, document string, number int) {
	t.Helper()
	read := ann.do("GET", contentOf(document), nil)
	require.Equal(t, http.StatusOK, read.status, "%s: %s", document, read.text)
	var name string
	var got int
	_, err := fmt.Sscan(string(read.text[:50]), &name, &got)
	require.NoError(t, err)
	assert.Equal(t, textOf(document, got), string(read.text))
	assert.GreaterOrEqual(t, got, number, document)
	for _, generation := range generations(ann.do("GET", "/api/documents/"+document+"/history", nil)) {
		assert.Equal(t, http.StatusOK, ann.do("GET", contentOf(document)+"?generation="+generation, nil).status, document)
	}
}

// archiveOf makes a backup.
func archiveOf(t *testing.T, s *instance) []byte {
	t.Helper()
	a := s.as(t, "root-key").do("GET", "/api/backup", nil)
	require.Equal(t, http.StatusOK, a.status, string(a.text))
	return a.text
}

// startWithDocuments starts a server with three documents, whose text is their name.
func startWithDocuments(t *testing.T) *instance {
	t.Helper()
	s := startWithUsers(t, backupRules)
	for _, document := range []string{"a", "b", "c"} {
		require.Equal(t, http.StatusOK, s.as(t, "ann-key").save(document, s.as(t, "ann-key").lock(document), document).status)
	}
	return s
}

// The check of an archive finds each cut and each changed byte.
func TestDamagedBackupsAreFound(t *testing.T) {
	t.Parallel()
	archive := archiveOf(t, startWithDocuments(t))
	sum, err := backup.Check(bytes.NewReader(archive))
	require.NoError(t, err)
	assert.Equal(t, int64(4), sum.Blobs, "three contents and the mark")
	const padding = 1024 // at the end of a tar file
	for _, length := range []int{0, 1, 511, 512, 513, 2048, len(archive) / 2, len(archive) - padding - 1024, len(archive) - padding - 512} {
		_, err := backup.Check(bytes.NewReader(archive[:length]))
		assert.ErrorIs(t, err, backup.ErrDamaged, "the first %d of %d bytes", length, len(archive))
	}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 200 {
		at := random.IntN(len(archive) - padding)
		damaged := slices.Clone(archive)
		damaged[at] ^= 1 << random.IntN(8)
		if _, err := backup.Check(bytes.NewReader(damaged)); err != nil {
			found++
		} else { // only the filling between files does not count
			assert.Zero(t, archive[at], "the change at %d of %d was not found", at, len(archive))
		}
	}
	assert.Greater(t, found, 150)
	for text, want := range map[string]error{`"format":1`: backup.ErrNewer, `"blobs":4`: backup.ErrDamaged, headText: backup.ErrDamaged} {
		other := strings.NewReplacer("1", "2", "4", "5", "h", "j").Replace(text)
		_, err := backup.Check(bytes.NewReader(bytes.Replace(archive, []byte(text), []byte(other), 1)))
		assert.ErrorIs(t, err, want, text)
	}
}

const headText = "holdfast-backup.json"

// A restore that fails leaves a directory on which no server starts, and which no other restore takes.
func TestRestoreNeedsAnEmptyDirectory(t *testing.T) {
	t.Parallel()
	s := startWithDocuments(t)
	archive := archiveOf(t, s)
	restore := func(archive []byte, dir string) error {
		_, err := backup.Restore(t.Context(), bytes.NewReader(archive), dir, "", slog.New(slog.DiscardHandler))
		return err
	}
	serve := func(dir string) error {
		c := server.DefaultConfig()
		c.DataDir = dir
		s, err := server.Start(t.Context(), c, nil)
		if err == nil {
			assert.NoError(t, s.Close())
		}
		return err
	}
	assert.ErrorIs(t, restore(archive, filepath.Dir(s.blobs)), kv.ErrNotEmpty, "a server runs there")
	assert.Equal(t, "a", string(s.as(t, "ann-key").do("GET", contentOf("a"), nil).text), "and goes on")
	full := kvtest.Dir(t)
	require.NoError(t, os.WriteFile(filepath.Join(full, "letter"), nil, 0o600))
	assert.ErrorIs(t, restore(archive, full), kv.ErrNotEmpty)

	half := filepath.Join(kvtest.Dir(t), "d")
	require.ErrorIs(t, restore(archive[:len(archive)*2/3], half), backup.ErrDamaged)
	assert.ErrorContains(t, serve(half), "has not finished")
	assert.ErrorIs(t, restore(archive, half), kv.ErrNotEmpty)
	require.NoError(t, os.RemoveAll(half))
	require.NoError(t, restore(archive, half))
	require.NoError(t, serve(half))

	// The archive of a store that names a content which the archive does not have.
	begin := bytes.Index(archive, []byte("blobs/"))
	require.Positive(t, begin)
	_, err := backup.Check(bytes.NewReader(slices.Concat(archive[:begin], archive[begin+1024:])))
	assert.ErrorIs(t, err, backup.ErrDamaged)
}

// A user that may not read everything may not make a backup.
func TestBackupsNeedAnAdministratorOfEverything(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "anyone documents/secret\n"+backupRules)
	for _, who := range []string{"root-key", "ann-key"} {
		assertError(t, s.as(t, who).do("GET", "/api/backup", nil), http.StatusForbidden, "not_allowed")
		assert.Equal(t, http.StatusForbidden, s.as(t, who).do("HEAD", "/api/backup", nil).status)
	}
	assertError(t, s.as(t, "").do("GET", "/api/backup", nil), http.StatusUnauthorized, "unauthenticated")
	assertError(t, start(t, nil).as(t, "ann").do("GET", "/api/backup", nil), http.StatusForbidden, "not_allowed")
}

// A server on an external cluster backs it up. A content that the server has lost is named, and does not keep the rest from being restored.
func TestBackupOfAnExternalStore(t *testing.T) {
	t.Parallel()
	first := startWithDocuments(t)
	lost := first.files(t)
	require.Len(t, lost, 3)
	require.NoError(t, os.WriteFile(lost[0], []byte("rot"), 0o600))
	require.NoError(t, os.Remove(lost[1]))
	second := first.another(t, func(c *server.Config) {
		c.APIKeys, c.Policy = writeFile(t, keyLine("root", "")), writeFile(t, backupRules)
	})
	archive := archiveOf(t, second)
	dir := kvtest.Dir(t)
	sum, err := backup.Restore(t.Context(), bytes.NewReader(archive), dir, "", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Base(lost[0])}, sum.Changed)
	assert.Equal(t, []string{filepath.Base(lost[1])}, sum.Missing)
	again := start(t, func(c *server.Config) { c.DataDir = dir })
	statuses := map[int]int{}
	for _, document := range []string{"a", "b", "c"} {
		a := again.as(t, "ann").do("GET", contentOf(document), nil)
		statuses[a.status]++
		if string(a.text) == document {
			statuses[0]++
		}
	}
	assert.Equal(t, map[int]int{0: 1, 200: 2, 500: 1}, statuses)
}

// backupFrom begins a backup of a server at that address, whose body is still to be read and closed.
func backupFrom(t *testing.T, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/backup", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer root-key")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response
}
