package blobstest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const bucket = "holdfast"

// S3 starts an S3-compatible server with an empty bucket for one test, puts its credentials into the environment and returns the
// place to open. VERSITYGW= is the path of the program versitygw, which is a real store on files; without it the server is
// gofakes3, in this process.
func S3(t *testing.T) string {
	t.Helper()
	return S3Behind(t, nil)
}

// S3Behind is S3 with something between the server and its clients, which may fail requests. Nil is nothing.
func S3Behind(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "holdfast-test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "holdfast-test-secret")
	handler := fake(t)
	if path := os.Getenv("VERSITYGW"); path != "" {
		handler = program(t, path)
	}
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return "s3://" + bucket + "/docs?endpoint=" + server.URL + "&region=us-east-1"
}

func fake(t *testing.T) http.Handler {
	t.Helper()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket(bucket))
	return gofakes3.New(backend).Server()
}

// program starts versitygw on an empty directory and returns a handler that passes requests on to it.
func program(t *testing.T, path string) http.Handler {
	t.Helper()
	dir, err := os.MkdirTemp("", "s3")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "objects", bucket), 0o700))
	socket := filepath.Join(dir, "s")
	process := exec.Command(path, "--quiet", "--port", socket, "posix", filepath.Join(dir, "objects"))
	process.Env = append(os.Environ(), "ROOT_ACCESS_KEY=holdfast-test", "ROOT_SECRET_KEY=holdfast-test-secret")
	process.Stdout, process.Stderr = t.Output(), t.Output()
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		assert.NoError(t, process.Process.Kill())
		_ = process.Wait()
		assert.NoError(t, os.RemoveAll(dir))
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	// The name of the host is signed, so it is passed on.
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "s3", r.In.Host
	}}
}
