package remoteserver

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/remote/remotetest"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

var origins = []string{"https://one.example", "https://two.example"}

// The real server passes the suite that the fake server of package remote passes.
func TestServer(t *testing.T) {
	remotetest.RunServer(t, func(t *testing.T, ttl time.Duration, test func(*testing.T, remotetest.World)) {
		t.Parallel()
		c := servertest.Unlimited(t)
		c.LockTTL, c.Origins = ttl, origins
		s := servertest.Start(t, c)
		browsers := map[string]*http.Client{}
		test(t, remotetest.World{
			Browser: func(session, origin string) remote.Server {
				if browsers[session] == nil {
					browsers[session] = visit(t, s.URL)
				}
				return browser{s.URL, origin, browsers[session]}
			},
			Visitor: func() remote.Server {
				jar, err := cookiejar.New(nil)
				require.NoError(t, err)
				return browser{s.URL, "", &http.Client{Jar: jar}}
			},
			Waiting: func(t *testing.T, n int) {
				t.Helper()
				require.Eventually(t, func() bool { return waiting(t, s.URL) == n }, 10*time.Second, 5*time.Millisecond)
			}})
	})
}

// visit returns the client of a new browser.
func visit(t *testing.T, url string) *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar}
	response, err := client.Get(url + "/api/documents/" + remotetest.Document + "/lock")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return client
}

// waiting returns the number of requests that wait for the document or below it.
func waiting(t *testing.T, url string) int {
	response, err := http.Get(url + "/api/locks?path=documents/" + remotetest.Document)
	require.NoError(t, err)
	defer response.Body.Close()
	var body struct {
		Waiters []any `json:"waiters"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
	return len(body.Waiters)
}
