package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs/blobstest"
)

// A client downloads a content often at once over few connections, and reads none of it. The server has a file left for everybody else, and for
// its store.
func TestSlowDownloadsDoNotUseAllFiles(t *testing.T) {
	t.Run("files", func(t *testing.T) { slowDownloads(t) })
	t.Run("bucket", func(t *testing.T) { slowDownloads(t, "--blobs", blobstest.S3(t)) })
}

func slowDownloads(t *testing.T, args ...string) {
	const files, connections, streams = 500, 4, 150
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writeCertificate(t, cert, key, 1)
	p := serveBy(t, []string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files)}, append(args, "--tls-cert", cert, "--tls-key", key)...)
	do := func(c *http.Client, session, method, path, token string, body []byte) (status int, answer io.ReadCloser) {
		request, err := http.NewRequestWithContext(t.Context(), method, "https://"+p.addr+"/api/documents/"+path, bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+session)
		if token != "" {
			request.Header.Set("Holdfast-Token", token)
		}
		response, err := c.Do(request)
		require.NoError(t, err, "%s", &p.log)
		require.Equal(t, 2, response.ProtoMajor)
		return response.StatusCode, response.Body
	}
	other := overHTTP2(t)
	var lock struct{ Token int64 }
	_, answer := do(other, "other", "POST", "d/lock", "", nil)
	require.NoError(t, json.NewDecoder(answer).Decode(&lock))
	data := bytes.Repeat([]byte("x"), 1<<20)
	status, _ := do(other, "other", "PUT", "d/content", strconv.FormatInt(lock.Token, 10), data)
	require.Equal(t, http.StatusOK, status)

	var slow []io.ReadCloser
	for i := range connections {
		c := overHTTP2(t)
		for range streams {
			status, body := do(c, fmt.Sprint("slow", i), "GET", "d/content", "", nil)
			require.Equal(t, http.StatusOK, status, "download %d", len(slow))
			slow = append(slow, body)
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Process.Pid))
	require.NoError(t, err)
	t.Logf("%d downloads, %d open files", len(slow), len(open))
	begin := time.Now()
	status, _ = do(other, "other", "POST", "e/lock", "", nil)
	assert.Equal(t, http.StatusOK, status)
	t.Logf("an acquisition took %s", time.Since(begin))
	read, err := io.ReadAll(slow[len(slow)-1])
	require.NoError(t, err)
	assert.Len(t, read, len(data))
	for _, body := range slow {
		_ = body.Close()
	}
	p.stop(t)
}

// overHTTP2 returns a client with a connection of its own, on which the server may send 64 KiB of each response that is not read.
func overHTTP2(t *testing.T) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 25 * time.Second}
}
