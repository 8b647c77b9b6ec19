package blobs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/blobs/blobstest"
)

func TestS3(t *testing.T) {
	place := blobstest.S3(t)
	blobstest.Run(t, func(t *testing.T) blobs.Blobs {
		s, err := blobs.Open(t.Context(), place)
		require.NoError(t, err)
		return s
	})
}

// faulty answers requests instead of the store while answer is set.
type faulty struct {
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (answered bool)]
	sent   atomic.Int64
}

func (f *faulty) set(answer func(w http.ResponseWriter, r *http.Request) bool) {
	f.answer.Store(&answer)
}

func (f *faulty) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.sent.Add(1)
		if answer := f.answer.Load(); answer == nil || !(*answer)(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(status int, code string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>No.</Message></Error>")
		return true
	}
}

// The store's errors become this package's errors, which the API distinguishes.
func TestS3Errors(t *testing.T) {
	var f faulty
	place := blobstest.S3Behind(t, f.wrap)
	s, err := blobs.OpenS3(t.Context(), place)
	require.NoError(t, err)
	const name = "ab-blob"
	require.NoError(t, s.Put(t.Context(), name, []byte("x")))

	f.set(refuse(http.StatusInsufficientStorage, "XMinioStorageFull"))
	require.ErrorIs(t, s.Put(t.Context(), name, []byte("x")), blobs.ErrFull)
	f.set(refuse(http.StatusForbidden, "AccessDenied"))
	err = s.Put(t.Context(), name, []byte("x"))
	require.Error(t, err)
	require.NotErrorIs(t, err, blobs.ErrUnavailable)
	_, err = s.Open(t.Context(), name)
	require.NotErrorIs(t, err, blobs.ErrNotFound, "a refusal does not mean that the blob is missing")
	f.set(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	require.ErrorIs(t, s.Delete(t.Context(), name), blobs.ErrUnavailable)
	_, err = blobs.OpenS3(t.Context(), place)
	require.ErrorContains(t, err, "cannot be reached")

	f.answer.Store(nil)
	r, err := s.Open(t.Context(), name)
	require.NoError(t, err)
	require.NoError(t, r.Close())
}

// A connection that breaks in the middle of a blob causes an error, never a truncated blob. The reader requests the
// rest.
func TestS3ConnectionBreaksWhileABlobIsRead(t *testing.T) {
	var f faulty
	s, err := blobs.OpenS3(t.Context(), blobstest.S3Behind(t, f.wrap))
	require.NoError(t, err)
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	require.NoError(t, s.Put(t.Context(), "ab-blob", data))
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", "Mon, 01 Jun 2026 00:00:00 GMT")
		_, _ = w.Write(data[:1000])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := s.Open(t.Context(), "ab-blob")
	require.NoError(t, err)
	read, err := io.ReadAll(r)
	require.ErrorIs(t, err, blobs.ErrUnavailable)
	assert.Len(t, read, 1000)
	_, err = r.Seek(500_000, io.SeekStart)
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(data[500_000:], rest))
	require.NoError(t, r.Close())
}

// Clients that read slowly keep many blobs open. Every reader gets all bytes, also those that have no connection of their own.
func TestS3HasManySlowReaders(t *testing.T) {
	s, err := blobs.OpenS3(t.Context(), blobstest.S3(t))
	require.NoError(t, err)
	data := bytes.Repeat([]byte("0123456789"), 20_000)
	require.NoError(t, s.Put(t.Context(), "ab-1", data))
	require.NoError(t, s.Put(t.Context(), "ab-empty", nil))
	for range 100 {
		r, err := s.Open(t.Context(), "ab-1")
		require.NoError(t, err)
		defer func() {
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.True(t, bytes.Equal(data[5:], rest))
			_, err = r.Seek(-3, io.SeekEnd)
			require.NoError(t, err)
			end, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, "789", string(end))
			require.NoError(t, r.Close())
		}()
		_, err = io.ReadFull(r, make([]byte, 5))
		require.NoError(t, err)
	}
	_, err = s.Open(t.Context(), "ab-2")
	require.ErrorIs(t, err, blobs.ErrNotFound)
	empty, err := s.Open(t.Context(), "ab-empty")
	require.NoError(t, err)
	none, err := io.ReadAll(empty)
	require.NoError(t, err)
	require.Empty(t, none)
	gone, cancel := context.WithCancel(t.Context())
	last, err := s.Open(gone, "ab-1")
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(last)
	require.ErrorIs(t, err, context.Canceled)
}

// So many blobs are open that the next one is read in pieces. The store is asked for no more than the reader takes.
func TestS3ReadsPiecesOfTheirLength(t *testing.T) {
	var f faulty
	s, err := blobs.OpenS3(t.Context(), blobstest.S3Behind(t, f.wrap))
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "ab-blob", []byte("0123456789")))
	open := func() io.ReadSeekCloser {
		r, err := s.Open(t.Context(), "ab-blob")
		require.NoError(t, err)
		return r
	}
	for range 48 {
		kept := open()
		defer func() { require.NoError(t, kept.Close()) }()
	}
	r := open()
	var ranges []string
	f.set(func(_ http.ResponseWriter, r *http.Request) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		return false
	})
	for range 2 {
		_, err := io.ReadFull(r, make([]byte, 4))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"bytes=0-3", "bytes=4-7"}, ranges)
	require.NoError(t, r.Close())
}

// The bucket is slow, and clients save hundreds of documents at once. Each connection to it is an open file.
func TestS3HasFewConnections(t *testing.T) {
	const most = 128
	var open, peak atomic.Int64
	tooMany, enough := make(chan struct{}), time.After(2*time.Second)
	var over sync.Once
	s, err := blobs.OpenS3(t.Context(), blobstest.S3Behind(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n := open.Add(1); n > most {
				peak.Store(n)
				over.Do(func() { close(tooMany) })
			}
			defer open.Add(-1)
			if r.Method == http.MethodPut {
				select {
				case <-tooMany:
				case <-enough:
					over.Do(func() { close(tooMany) })
				}
			}
			next.ServeHTTP(w, r)
		})
	}))
	require.NoError(t, err)
	written := make(chan error)
	for i := range 300 {
		go func() { written <- s.Put(t.Context(), fmt.Sprintf("ab-%d", i), []byte("x")) }()
	}
	for range 300 {
		require.NoError(t, <-written)
	}
	assert.Zero(t, peak.Load(), "so many requests at once")
}

// A client leaves while its blob is on the way to the bucket. The write goes on. A write that waits for its turn ends when its client leaves.
func TestS3FinishesAWriteWhoseClientLeaves(t *testing.T) {
	var f faulty
	s, err := blobs.OpenS3(t.Context(), blobstest.S3Behind(t, f.wrap))
	require.NoError(t, err)
	begun, over := make(chan struct{}), make(chan struct{})
	f.set(func(http.ResponseWriter, *http.Request) bool {
		begun <- struct{}{}
		<-over
		return false
	})
	ctx, leave := context.WithCancel(t.Context())
	written := make(chan error)
	for i := range 64 {
		go func() { written <- s.Put(ctx, fmt.Sprintf("ab-%d", i), []byte("x")) }()
		<-begun
	}
	leave()
	require.ErrorIs(t, s.Put(ctx, "ab-gone", nil), context.Canceled)
	close(over)
	for range 64 {
		require.NoError(t, <-written)
	}
	assert.EqualValues(t, 65, f.sent.Load(), "the look for the bucket, and 64 writes")
}

// Seek sends nothing: reading a range takes one request more than reading everything.
func TestS3SeekSendsNothing(t *testing.T) {
	var f faulty
	s, err := blobs.OpenS3(t.Context(), blobstest.S3Behind(t, f.wrap))
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), "ab-blob", []byte("0123456789")))
	before := f.sent.Load()
	r, err := s.Open(t.Context(), "ab-blob")
	require.NoError(t, err)
	size, err := r.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	assert.Equal(t, int64(10), size)
	_, err = r.Seek(0, io.SeekStart)
	require.NoError(t, err)
	read, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "0123456789", string(read))
	assert.Equal(t, before+1, f.sent.Load())
	require.NoError(t, r.Close())
}

// A bucket is listed page by page. Foreign objects are skipped.
func TestS3ListsInPages(t *testing.T) {
	blobs.SetPage(t, 7)
	place := blobstest.S3(t)
	s, err := blobs.OpenS3(t.Context(), place)
	require.NoError(t, err)
	other, err := blobs.OpenS3(t.Context(), strings.Replace(place, "/docs?", "/docs2?", 1))
	require.NoError(t, err)
	require.NoError(t, other.Put(t.Context(), "ab-other", nil))
	want := map[string]bool{}
	for i := range 21 {
		name := string("0123456789abcdef"[i%16]) + "0-" + strings.Repeat("x", i+1)
		want[name] = true
		require.NoError(t, s.Put(t.Context(), name, nil))
	}
	got := map[string]bool{}
	require.NoError(t, s.Each(t.Context(), func(name string) error {
		assert.False(t, got[name], name)
		got[name] = true
		return nil
	}))
	assert.Equal(t, want, got)
}

func TestPlacesOfContents(t *testing.T) {
	for place, why := range map[string]string{
		"s3://":                              "names no bucket",
		"s3://b?endpoint=ftp://x":            "endpoint",
		"s3://b?endpoint=https://x/path":     "endpoint",
		"s3://b?secret=x":                    "unknown setting",
		"s3://key:secret@b":                  "AWS_SECRET_ACCESS_KEY",
		"s3://key:secret@b%zz":               "names no bucket",
		"gs://b":                             "begins with s3://",
		"s3://b?endpoint=http://127.0.0.1:1": "cannot be reached",
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		_, err := blobs.Open(t.Context(), place)
		require.ErrorContains(t, err, why, place)
		assert.NotContains(t, err.Error(), "key:secret")
	}
}
