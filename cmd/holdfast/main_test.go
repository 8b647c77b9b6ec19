package main

import (
	"bufio"
	"context"
	"flag"
	"io"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var site = fstest.MapFS{"index.html": {Data: []byte("the demo")}}

// served starts a server with a site, and returns its address and a function that stops it.
func served(t *testing.T, site fs.FS) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--drain", "0s", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()}, site, stdout, io.Discard)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address = regexp.MustCompile(`http://localhost:\d+`).FindString(line)
	require.NotEmpty(t, address, line)
	// The requests go to 127.0.0.1, because the machine decides what localhost resolves to.
	return strings.Replace(address, "localhost", "127.0.0.1", 1), func() {
		cancel()
		select {
		case err := <-ended:
			assert.NoError(t, err)
		case <-time.After(defaultOptions().server.StopLimit):
			assert.Fail(t, "serve did not stop")
		}
	}
}

func fetched(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(text)
}

func TestServeAnswersUntilItIsStopped(t *testing.T) {
	address, stop := served(t, site)
	_, body := fetched(t, address)
	assert.Equal(t, "the demo", body)
	stop()
}

// A server that is stopped while it starts has not failed.
func TestServeIsStoppedWhileItStarts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()}, site, io.Discard, io.Discard))
}

// A binary of go install has no site, because the site is built and not in the repository.
func TestServeWithoutASite(t *testing.T) {
	address, stop := served(t, fstest.MapFS{".keep": {}})
	status, body := fetched(t, address)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, `run "make build"`)
	status, body = fetched(t, address+"/api/openapi.json")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, `"openapi"`)
	stop()
}

func TestServeSaysThatThePortIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	err = run(t.Context(), []string{"serve", "--addr", addr}, site, io.Discard, io.Discard)
	assert.ErrorContains(t, err, addr+" is taken by another program")
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"dance"}, {"serve", "--nonsense"}, {"serve", "here"}} {
		var stderr strings.Builder
		err := run(t.Context(), args, site, io.Discard, &stderr)
		assert.ErrorIs(t, err, errUsage, args)
		assert.Contains(t, stderr.String(), "holdfast serve", args)
	}
}

func TestHelp(t *testing.T) {
	var stdout strings.Builder
	require.NoError(t, run(t.Context(), []string{"help"}, site, &stdout, io.Discard))
	for _, c := range commands() {
		assert.Contains(t, stdout.String(), "holdfast "+c.name)
	}
	assert.NoError(t, run(t.Context(), []string{"serve", "-h"}, site, io.Discard, io.Discard))
}

func TestSiteURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://localhost:8080",
		"0.0.0.0:8080":   "http://localhost:8080",
		"[::]:8080":      "http://localhost:8080",
		"[::1]:80":       "http://localhost:80",
		"192.0.2.7:8080": "http://192.0.2.7:8080",
	} {
		resolved, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		assert.Equal(t, want, siteURL("http", resolved))
	}
}

// If other machines can reach the server, users must be able to sign in, or the operator must state that they need
// not.
func TestServeRefusesToBeAnonymousOnTheNetwork(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.7:0", "example.com:0"} {
		err := run(t.Context(), []string{"serve", "--addr", addr}, site, io.Discard, io.Discard)
		assert.ErrorContains(t, err, "--anonymous", addr)
	}
	for _, args := range [][]string{
		{"--addr", "127.0.0.1:0"}, {"--addr", "localhost:0"}, {"--addr", "[::1]:0"}, {"--addr", "0.0.0.0:0", "--anonymous"}, {"--addr", ":0", "--api-keys", "file"},
	} {
		options := defaultOptions()
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		options.flags(flags)
		require.NoError(t, flags.Parse(args))
		assert.NoError(t, options.checkAnonymous(), args)
	}
}
