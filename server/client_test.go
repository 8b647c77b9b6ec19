package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// instance is a running server of a test.
type instance struct {
	*servertest.Server
	blobs string
}

// start runs a server on a directory of its own, with changes to the defaults.
func start(t testing.TB, change func(*server.Config)) *instance {
	t.Helper()
	c := servertest.Config(t)
	if change != nil {
		change(&c)
	}
	return startWith(t, c)
}

func startWith(t testing.TB, c server.Config) *instance {
	t.Helper()
	if len(c.Etcd) > 0 {
		c.DataDir = ""
	}
	return &instance{servertest.Start(t, c), cmp.Or(c.Blobs, filepath.Join(c.DataDir, "blobs"))}
}

// another starts a second server on the store of the first.
func (i *instance) another(t testing.TB, change func(*server.Config)) *instance {
	t.Helper()
	return start(t, func(c *server.Config) {
		c.Etcd, c.Blobs = []string{i.Store().Endpoint()}, i.blobs
		if change != nil {
			change(c)
		}
	})
}

// client is somebody who asks, by a secret.
type client struct {
	t      testing.TB
	base   string
	secret string
	name   string
	header http.Header
}

func (i *instance) as(t testing.TB, secret string) client {
	return client{t, i.URL, secret, "", http.Header{}}
}

// named makes locks that this client takes bear a name.
func (c client) named(name string) client { c.name = name; return c }

func (c client) with(name, value string) client {
	c.header = c.header.Clone()
	c.header.Set(name, value)
	return c
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   []byte
	body   map[string]any
}

func (c client) do(method, path string, body any) answer {
	c.t.Helper()
	a, err := c.try(c.t.Context(), method, path, body)
	require.NoError(c.t, err)
	return a
}

// seesWaiting waits until so many wait at a path.
func (c client) seesWaiting(path string, n int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		list, _ := c.do("GET", "/api/locks?path="+path, nil).body["waiters"].([]any)
		return len(list) == n
	}, 30*time.Second, 5*time.Millisecond)
}

// mayHaveNoMore checks that the client gets no more locks. The server counts those that its own view shows. To give up a ticket, it waits until it
// has seen everything before.
func (c client) mayHaveNoMore() {
	c.t.Helper()
	require.Equal(c.t, http.StatusOK, c.do("DELETE", "/api/locks?ticket=none", nil).status)
	assertError(c.t, c.do("POST", lockOf("more"), nil), http.StatusTooManyRequests, "too_many_locks")
}

func (c client) try(ctx context.Context, method, path string, body any) (answer, error) {
	var text []byte
	if body == nil && method == "POST" && c.name != "" {
		body = map[string]any{"holder_name": c.name}
	}
	switch body := body.(type) {
	case nil:
	case string:
		text = []byte(body)
	case []byte:
		text = body
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	request.Header = c.header.Clone()
	request.Host = c.header.Get("Host")
	if c.secret != "" {
		request.Header.Set("Authorization", "Bearer "+c.secret)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.text, err = io.ReadAll(response.Body); err != nil {
		return a, err
	}
	_ = json.Unmarshal(a.text, &a.body) // content need not be JSON
	if err := openAPI().check(method, path, text, a); err != nil {
		c.t.Error(err)
	}
	return a, nil
}

// fencingRuns is how often a holder pauses and writes: a few times here, a thousand times in make chaos-server.
func fencingRuns() int {
	if n, err := strconv.Atoi(os.Getenv("FENCING_RUNS")); err == nil {
		return n
	}
	return 40
}

func lockOf(document string) string    { return "/api/documents/" + document + "/lock" }
func contentOf(document string) string { return "/api/documents/" + document + "/content" }

// lock takes a document's lock and returns its token.
func (c client) lock(document string) int64 {
	c.t.Helper()
	a := c.do("POST", lockOf(document), nil)
	require.Equal(c.t, http.StatusOK, a.status, string(a.text))
	return a.token()
}

func (c client) save(document string, token int64, data string) answer {
	c.t.Helper()
	return c.with(remote.HeaderToken, strconv.FormatInt(token, 10)).do("PUT", contentOf(document), data)
}

func (a answer) token() int64 { n, _ := a.body["token"].(float64); return int64(n) }

func (a answer) code() string { s, _ := a.body["error"].(string); return s }

func (a answer) time(t testing.TB, key string) time.Time {
	t.Helper()
	text, _ := a.body[key].(string)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, text)
	parsed, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return parsed
}

// stream is an open WebSocket of events.
type stream struct {
	t    testing.TB
	conn *websocket.Conn
}

func (i *instance) events(t testing.TB, document, query string) stream {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), i.URL+"/api/documents/"+document+"/events"+query, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return stream{t, conn}
}

type event map[string]any

// next returns the next event.
func (s stream) next() event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), shortTTL+10*time.Second)
	defer cancel()
	_, text, err := s.conn.Read(ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, openAPI().validate("openapi.json#/components/schemas/Event", text))
	var e event
	require.NoError(s.t, json.Unmarshal(text, &e))
	return e
}
