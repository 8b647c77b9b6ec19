package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client asks for the metrics often at once over few connections, and reads none of them. The server keeps few of them in memory.
func TestSlowReadersOfMetricsUseLittleMemory(t *testing.T) {
	const connections, streams = 4, 200
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writeCertificate(t, cert, key, 1)
	p := serveBy(t, nil, "--tls-cert", cert, "--tls-key", key)
	get := func(c *http.Client) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+p.addr+"/metrics", nil)
		require.NoError(t, err)
		request.Header.Set("Accept-Encoding", "identity")
		response, err := c.Do(request)
		require.NoError(t, err, "%s", &p.log)
		return response
	}
	first := get(overHTTP2(t))
	defer first.Body.Close()
	text, err := io.ReadAll(first.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, first.StatusCode)
	before := memoryOf(t, p.Process.Pid)
	for range connections {
		c := overHTTP2(t)
		c.Transport.(*http.Transport).HTTP2.MaxReceiveBufferPerStream = 1024
		for range streams {
			response := get(c)
			defer response.Body.Close()
		}
	}
	after := memoryOf(t, p.Process.Pid)
	refused := get(overHTTP2(t))
	defer refused.Body.Close()
	assert.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	t.Logf("the metrics are %d bytes; memory %d kB before, %d kB after", len(text), before, after)
	assert.Less(t, after, before+80_000) // 110,000 more without a limit, and 600,000 under the race detector
	p.stop(t)
}

// memoryOf is the resident memory of a process, in kB.
func memoryOf(t *testing.T, pid int) (kB int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	_, err = fmt.Sscan(rest, &kB)
	require.NoError(t, err)
	return kB
}
