package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowBody arrives only after go on is closed.
type slowBody struct {
	io.Reader
	goOn chan struct{}
}

func (s slowBody) Read(p []byte) (int, error) {
	<-s.goOn
	return s.Reader.Read(p)
}

// Clients of one address send a great number of bodies of 64 KiB without their last byte, over a few HTTP/2 connections. The server has a
// limited number of them in memory. It refuses the others, but not the short requests of that address, and none of another address.
func TestSmallBodiesInMemoryAreBounded(t *testing.T) {
	const most = 2048
	for name, read := range map[string]func(a *API, r *http.Request) error{
		"content": func(a *API, r *http.Request) error {
			_, end, err := a.ReadContent(httptest.NewRecorder(), r, func() error { return nil })
			if err == nil {
				end()
			}
			return err
		},
		"object": func(a *API, r *http.Request) error {
			return a.readBody(httptest.NewRecorder(), r, &struct{}{}, false)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, err := New(Config{MaxContent: 8 << 20, Address: func(r *http.Request) string { return r.Host }})
			require.NoError(t, err)
			request := func(host string, body io.Reader, size int64) *http.Request {
				r := httptest.NewRequestWithContext(t.Context(), "POST", "http://"+host, body)
				r.ContentLength = size
				return r
			}
			text := "{" + strings.Repeat(" ", maxBody-2) + "}"
			ended, goOn := make(chan error), make(chan struct{})
			for range most {
				go func() { ended <- read(a, request("198.51.100.1", slowBody{strings.NewReader(text), goOn}, maxBody)) }()
			}
			synctest.Wait()
			var limited *rateError
			require.ErrorAs(t, read(a, request("198.51.100.1", strings.NewReader(text), maxBody)), &limited, name)
			assert.NoError(t, read(a, request("198.51.100.1", strings.NewReader("{}"), 2)), name)
			assert.NoError(t, read(a, request("198.51.100.2", strings.NewReader(text), maxBody)), name)
			close(goOn)
			for range most {
				require.NoError(t, <-ended, name)
			}
			assert.NoError(t, read(a, request("198.51.100.1", strings.NewReader(text), maxBody)), name)
		})
	}
}
