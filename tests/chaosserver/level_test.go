package chaosserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// Many documents are saved all the time, and everything that the server keeps for them stays level: its contents, its store, the
// store's log and its memory. The first half of the run fills the history. On a busy machine, a sweep comes late now and then.
// SOAK_SECONDS lets 1,000 documents be saved every 2 s for so long, with the server's own settings.
func TestStoreStaysLevel(t *testing.T) {
	length, documents, pause := 16*time.Second, 20, 250*time.Millisecond
	settings := []string{"--history", "3s", "--sweep", "1s", "--keep", "5"}
	if seconds := number("SOAK_SECONDS", 0); seconds > 0 {
		length, documents, pause, settings = time.Duration(seconds)*time.Second, 1000, 2*time.Second, nil
	}
	dir := tempDir(t)
	// A machine that is busy with other things delays heartbeats.
	s := serving.Run(t, append(settings, "--data-dir", dir, "--log-level", "warn", "--lock-ttl", "5m", "--rate", "0", "--new-rate", "0", "--address-rate", "0")...)
	authors := newAuthors(s.URL, documents, pause)
	var samples []kept
	for at := time.Duration(0); at < length; at += length / 16 {
		select {
		case <-authors.life.Done():
			require.NoError(t, context.Cause(authors.life))
		case <-time.After(length / 16):
		}
		samples = append(samples, measure(t, s.URL, dir))
		t.Logf("%v: %d saves; %v", at+length/16, authors.saves.Load(), samples[len(samples)-1])
	}
	authors.end()
	require.ErrorIs(t, context.Cause(authors.life), errEnough)
	for _, a := range authors.all {
		text, err := a.do("GET", "content", nil)
		require.NoError(t, err)
		require.Equal(t, a.text(a.saved), text, a.document)
	}
	for what := range samples[0] {
		size := func(a, b kept) int { return cmp.Compare(a[what], b[what]) }
		before, after := slices.MaxFunc(samples[4:10], size)[what], slices.MinFunc(samples[12:], size)[what]
		assert.LessOrEqual(t, after, before+before/5, "bytes of the %s", what)
	}
}

// kept is what a server keeps, in bytes.
type kept map[string]int64

func measure(t *testing.T, url, dir string) kept {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	gauge := func(name string) int64 {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(metrics)
		require.NotNil(t, found, name)
		value, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(t, err)
		return int64(value)
	}
	return kept{
		"contents": sizeOf(t, filepath.Join(dir, "blobs")), "log": sizeOf(t, filepath.Join(dir, "member", "wal")),
		"store": gauge("holdfast_store_size_bytes"), "memory": gauge("process_resident_memory_bytes"),
	}
}

// sizeOf is the size of the files in a folder. Files come and go meanwhile.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}

// authors save one document each.
type authors struct {
	all     []*author
	saves   atomic.Int64
	life    context.Context // ends with the first error
	stop    context.CancelCauseFunc
	working sync.WaitGroup
}

var errEnough = errors.New("the test has seen enough")

func newAuthors(url string, documents int, pause time.Duration) *authors {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: documents}}
	a := &authors{}
	a.life, a.stop = context.WithCancelCause(context.Background())
	for i := range documents {
		one := &author{client: client, url: url, document: "document-" + strconv.Itoa(i)}
		a.all = append(a.all, one)
		a.working.Go(func() {
			if err := one.work(a, pause, time.Duration(i)*pause/time.Duration(documents)); err != nil {
				a.stop(err)
			}
		})
	}
	return a
}

func (a *authors) end() {
	a.stop(errEnough)
	a.working.Wait()
}

// author is the holder of the lock on a document.
type author struct {
	client        *http.Client
	url, document string
	token         int64
	saved         int // the number of the last save that was acknowledged
}

// beat is the pause between two heartbeats of an author.
const beat = 10 * time.Second

func (a *author) work(all *authors, pause, first time.Duration) error {
	lock, err := a.do("POST", "lock", nil)
	if err != nil {
		return err
	}
	a.token = tokenOf([]byte(lock))
	beaten, due := time.Now(), time.Now().Add(first)
	for {
		select {
		case <-all.life.Done():
			return nil
		case <-time.After(time.Until(due)):
		}
		due = time.Now().Add(pause) // what a slow server missed is not made up for
		if time.Since(beaten) > beat {
			beaten = time.Now()
			if _, err := a.do("PUT", "lock", nil); err != nil {
				return err
			}
		}
		if _, err := a.do("PUT", "content", []byte(a.text(a.saved+1))); err != nil {
			return err
		}
		a.saved++
		all.saves.Add(1)
	}
}

// text is the content of a save: 10 kB that no other save has.
func (a *author) text(save int) string {
	return fmt.Sprintf("%-10000s", fmt.Sprint(a.document, " ", save))
}

// do makes a request, again while the store of a busy machine does not answer.
func (a *author) do(method, what string, body []byte) (string, error) {
	for {
		status, text, err := a.try(method, what, body)
		if err != nil || status == http.StatusOK {
			return text, err
		}
		if status != http.StatusServiceUnavailable {
			return text, fmt.Errorf("%s %s of %s: %d %s", method, what, a.document, status, text)
		}
		time.Sleep(time.Second)
	}
}

func (a *author) try(method, what string, body []byte) (status int, text string, err error) {
	r, err := http.NewRequest(method, a.url+"/api/documents/"+a.document+"/"+what, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer author-of-"+a.document)
	if a.token > 0 {
		r.Header.Set(remote.HeaderToken, strconv.FormatInt(a.token, 10))
	}
	response, err := a.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, string(read), err
}
