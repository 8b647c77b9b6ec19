package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
	"github.com/holdfast-dev/holdfast/server/locks"
)

// faulty is a blob store that a test can make fail.
type faulty struct {
	*blobs.Files
	mu   sync.Mutex
	puts func() error
	// stuck is the name of a blob that cannot be deleted.
	stuck string
	// deletes is called for each deletion, if it is set.
	deletes func()
}

var errStuck = errors.New("the file cannot be deleted")

func (f *faulty) Delete(ctx context.Context, name string) error {
	f.mu.Lock()
	stuck, deletes := f.stuck, f.deletes
	f.mu.Unlock()
	if name == stuck {
		return errStuck
	}
	if deletes != nil {
		deletes()
	}
	return f.Files.Delete(ctx, name)
}

func (f *faulty) Put(ctx context.Context, name string, data []byte) error {
	f.mu.Lock()
	puts := f.puts
	f.mu.Unlock()
	if puts != nil {
		if err := puts(); err != nil {
			return err
		}
	}
	return f.Files.Put(ctx, name, data)
}

func (f *faulty) names(t *testing.T) (list []string) {
	t.Helper()
	require.NoError(t, f.Each(t.Context(), func(name string) error { list = append(list, name); return nil }))
	return list
}

// opened returns a store, its blobs, and a function that locks a document and returns the token.
func opened(t *testing.T, keep int) (*Store, *faulty, func(document string) int64) {
	t.Helper()
	store := kvtest.Open(t)
	table, err := locks.Open(t.Context(), store, locks.Config{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	files, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	f := &faulty{Files: files}
	lock := func(document string) int64 {
		l, err := table.Acquire(t.Context(), locks.Request{
			Paths: []locks.Path{locks.Document(document)}, Holder: locks.Holder{ID: "ann"}, TTL: time.Hour, Again: true})
		require.NoError(t, err)
		return l.Token
	}
	return New(Config{KV: store, Locks: table, Blobs: f, Keep: keep}), f, lock
}

func (s *Store) save(t *testing.T, document string, token int64, text string) (Info, error) {
	t.Helper()
	return s.Write(t.Context(), document, Writer{Holder: "ann", Maker: "ann"}, token, Save{}, nil, []byte(text))
}

// A full blob store refuses the save, and the previous content stays.
func TestAFullBlobStore(t *testing.T) {
	s, f, lock := opened(t, 2)
	token := lock("r")
	_, err := s.save(t, "r", token, "before")
	require.NoError(t, err)
	f.puts = func() error { return blobs.ErrFull }
	_, err = s.save(t, "r", token, "after")
	require.ErrorIs(t, err, blobs.ErrFull)
	data, _, err := s.Read(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "before", string(data))
	f.puts = nil
	_, err = s.save(t, "r", token, "after")
	require.NoError(t, err)
}

// The lock ends while the bytes are written: the save fails and leaves nothing behind.
func TestASaveThatLosesItsLockLeavesNothing(t *testing.T) {
	s, f, lock := opened(t, 2)
	token := lock("r")
	f.puts = func() error { return s.Locks.ReleaseAt(context.Background(), locks.Document("r"), "ann", token) }
	_, err := s.save(t, "r", token, "late")
	require.ErrorIs(t, err, locks.ErrStaleToken)
	assert.Empty(t, f.names(t))
	_, _, err = s.Read(t.Context(), "r")
	require.ErrorIs(t, err, ErrNotFound)
}

// Two writers write the same bytes while a collector runs all the time. Every acknowledged content is complete.
func TestCollectingHarmsNoWriterOfTheSameBytes(t *testing.T) {
	s, _, lock := opened(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	var collecting, writing sync.WaitGroup
	collecting.Go(func() {
		for ctx.Err() == nil {
			if err := errors.Join(s.Tidy(ctx), s.Sweep(ctx, time.Now())); err != nil && ctx.Err() == nil {
				assert.NoError(t, err)
				return
			}
		}
	})
	for w := range 4 {
		document := fmt.Sprint("r", w%4)
		token := lock(document)
		writing.Go(func() {
			for i := range 60 {
				text := strings.Repeat("same", i%2+1)
				if _, err := s.save(t, document, token, text); !assert.NoError(t, err) {
					return
				}
				data, _, err := s.Read(context.WithoutCancel(ctx), document)
				if !assert.NoError(t, err) || !assert.Equal(t, text, string(data)) {
					return
				}
			}
		})
	}
	writing.Wait()
	stop()
	collecting.Wait()
}

// A crash between the blob and its transaction leaves a blob without a name. The sweep deletes only that blob, and
// only once it is old.
func TestBlobsLeftByACrashAreSwept(t *testing.T) {
	s, f, lock := opened(t, 5)
	token := lock("r")
	for i := range 3 {
		_, err := s.save(t, "r", token, fmt.Sprint(i))
		require.NoError(t, err)
	}
	_, digest := etag([]byte("x"))
	left := digest + "-" + newSave(time.Now())
	require.NoError(t, f.Put(t.Context(), left, []byte("x")))
	foreign := "ab-somebody-elses"
	require.NoError(t, f.Put(t.Context(), foreign, []byte("x")))
	require.NoError(t, s.Sweep(t.Context(), time.Now()))
	assert.Len(t, f.names(t), 5, "it may be on its way")
	require.NoError(t, s.Sweep(t.Context(), time.Now().Add(OrphanAge+time.Minute)))
	names := f.names(t)
	assert.Len(t, names, 4)
	assert.NotContains(t, names, left)
	history, err := s.History(t.Context(), "r")
	require.NoError(t, err)
	for i, info := range history {
		c, err := s.Find(t.Context(), "r", info.Generation)
		require.NoError(t, err)
		r, err := c.Open(t.Context())
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, errors.Join(err, r.Close()))
		assert.Equal(t, fmt.Sprint(2-i), string(data))
	}
}

// The limit of kept generations is lower than before: the next save drops the surplus ones.
func TestLowerKeepDropsSurplusGenerations(t *testing.T) {
	s, f, lock := opened(t, MaxKeep)
	token := lock("r")
	for i := range MaxKeep + 3 {
		_, err := s.save(t, "r", token, fmt.Sprint(i))
		require.NoError(t, err)
	}
	s.Keep = 1
	_, err := s.save(t, "r", token, "last")
	require.NoError(t, err)
	require.NoError(t, s.Tidy(t.Context()))
	assert.Len(t, f.names(t), 1)
}

// A disk that is busy with saves takes milliseconds for a deletion, and a bucket always does. Many documents that are saved all the
// time drop more generations than could be deleted one after the other.
func TestBlobsAreDeletedSeveralAtOnce(t *testing.T) {
	s, f, lock := opened(t, 1)
	token := lock("r")
	for i := range deletionsAtOnce*deletionsPerCommit + 1 {
		_, err := s.save(t, "r", token, fmt.Sprint(i))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var deletions atomic.Int64
	begun := make(chan struct{}) // closed when so many have begun and none has ended
	f.deletes = func() {
		if deletions.Add(1) == deletionsAtOnce {
			close(begun)
		}
		select {
		case <-begun:
		case <-ctx.Done():
		}
	}
	require.NoError(t, s.Tidy(t.Context()))
	require.NoError(t, ctx.Err())
	assert.EqualValues(t, deletionsAtOnce*deletionsPerCommit, deletions.Load())
	assert.Len(t, f.names(t), 1)
}

// The disk does not let go of one file. All others are deleted in spite of it, and the file is when the disk does.
func TestABlobThatCannotBeDeletedKeepsNoOther(t *testing.T) {
	s, f, lock := opened(t, 1)
	token := lock("r")
	for i := range 4 {
		_, err := s.save(t, "r", token, fmt.Sprint(i))
		require.NoError(t, err)
	}
	garbage, err := s.KV.Page(t.Context(), garbagePrefix, garbagePrefix, page)
	require.NoError(t, err)
	require.Len(t, garbage, 3)
	f.stuck = strings.TrimPrefix(garbage[0].Key, garbagePrefix)
	require.ErrorIs(t, s.Tidy(t.Context()), errStuck)
	assert.Len(t, f.names(t), 2)
	f.stuck = ""
	require.NoError(t, s.Tidy(t.Context()))
	assert.Len(t, f.names(t), 1)

	for _, text := range []string{"x", "y", "z"} {
		_, digest := etag([]byte(text))
		require.NoError(t, f.Put(t.Context(), digest+"-"+newSave(time.Now()), []byte(text)))
	}
	late := time.Now().Add(OrphanAge + time.Minute)
	f.stuck = f.names(t)[0]
	named, err := s.named(t.Context(), f.stuck)
	require.NoError(t, err)
	if named {
		f.stuck = f.names(t)[1]
	}
	require.ErrorIs(t, s.Sweep(t.Context(), late), errStuck)
	assert.Len(t, f.names(t), 2)
}
