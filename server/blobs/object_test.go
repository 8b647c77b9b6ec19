package blobs

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client reads a large content slowly. Only the time in which the store delivers nothing counts.
func TestSlowReaderOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		stop := func() { ended = true }
		o := &object{ctx: t.Context(), end: func() {}, cursor: cursor{size: 4}, body: io.NopCloser(strings.NewReader("text")), stop: stop, stalls: time.AfterFunc(s3Limit, stop)}
		for range 2 {
			_, err := io.ReadFull(o, make([]byte, 2))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			assert.False(t, ended)
		}
		require.NoError(t, o.Close())
		assert.True(t, ended)
	})
}
