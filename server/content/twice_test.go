package content

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A save arrives twice at the same time, since the client repeats it. The one that comes second keeps no blob.
func TestASaveThatArrivesTwiceKeepsOneBlob(t *testing.T) {
	s, f, lock := opened(t, 5)
	token := lock("r")
	write := func() {
		_, err := s.Write(t.Context(), "r", Writer{Holder: "ann", Maker: "ann"}, token, Save{Draft: "x", Number: 1, Order: 1}, nil, []byte("text"))
		require.NoError(t, err)
	}
	first := true
	f.puts = func() error {
		if first {
			first = false
			write()
		}
		return nil
	}
	write()
	assert.Len(t, f.names(t), 1)
}
