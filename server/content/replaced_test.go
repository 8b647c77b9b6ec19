package content

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
)

// meddling calls a function after it has opened a blob.
type meddling struct {
	blobs.Blobs
	opened func()
}

func (m *meddling) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	r, err := m.Blobs.Open(ctx, name)
	m.opened()
	return r, err
}

// Slow downloads have as many blobs open as may stay open. A save replaces a content whose blob was just opened for reading, and the blob is
// deleted. The reader gets the new content.
func TestAContentThatIsReplacedWhileItIsRead(t *testing.T) {
	s, f, lock := opened(t, 1)
	token := lock("r")
	_, err := s.save(t, "r", token, "before")
	require.NoError(t, err)
	for range 48 {
		r, err := f.Open(t.Context(), f.names(t)[0])
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
	}
	s.Blobs = &meddling{f, sync.OnceFunc(func() {
		_, err := s.save(t, "r", token, "after")
		require.NoError(t, err)
		require.NoError(t, s.Tidy(t.Context()))
	})}
	data, _, err := s.Read(t.Context(), "r")
	require.NoError(t, err)
	assert.Equal(t, "after", string(data))
}
