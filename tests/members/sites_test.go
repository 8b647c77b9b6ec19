package members

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

const siteDocuments = 20

// sites is two deployments with three sites. Which site belongs to which is in deploy/sites.map.
type sites struct {
	t           *testing.T
	deployments map[string]*serving.Server // by the name of the backend
	home        map[string]string          // the backends by site
	gate        string                     // the address of the proxy
}

// The deployments behind one proxy: the host name decides, so a document is always locked and saved at the same one.
func TestSitesBehindAProxy(t *testing.T) {
	testSites(t, func(s *sites) string { return strings.TrimPrefix(serveOn(t, s.byName()), "http://") })
}

// The same behind HAProxy with the file for operators.
func TestDeployedSites(t *testing.T) {
	if os.Getenv("CHART") == "" {
		t.Skip("make check-deploy runs it")
	}
	testSites(t, func(s *sites) string { return s.haproxy() })
}

func testSites(t *testing.T, proxy func(*sites) string) {
	s := &sites{t: t, home: readMap(t), deployments: map[string]*serving.Server{}}
	for _, name := range []string{"one", "two"} {
		flags := []string{"--data-dir", shortDir(t), "--trusted-proxy", "127.0.0.1", "--address-rate", "0", "--rate", "0", "--new-rate", "0"}
		for site, home := range s.home {
			if home == name {
				flags = append(flags, "--host", site)
			}
		}
		s.deployments[name] = serving.Run(t, flags...)
	}
	s.gate = proxy(s)
	leases := map[string]*client.Lease{}
	for site := range s.home {
		for i := range siteDocuments {
			id := fmt.Sprintf("%s.%d", site, i)
			leases[id] = s.edit(site, id)
		}
	}
	s.gate = proxy(s) // a proxy that was restarted, or another one
	for id := range leases {
		site := id[:strings.LastIndex(id, ".")]
		s.isHome(site, id)
		other := s.client(site)
		_, err := other.Acquire(t.Context(), client.Request{Document: id})
		assert.ErrorIs(t, err, client.ErrDenied, "another client of the site meets the lock, through the other proxy too")
		content, err := other.Get(t.Context(), id, client.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, id, string(content.Data))
	}
	for site := range s.home {
		s.hearsOfRelease(site, leases[site+".0"])
	}
	s.refusesOthers(proxy)
}

// edit locks and saves a document of a site through the proxy.
func (s *sites) edit(site, id string) *client.Lease {
	c := s.client(site)
	lease, err := c.Acquire(s.t.Context(), client.Request{Document: id, TTL: 10 * time.Minute})
	require.NoError(s.t, err)
	_, err = c.Put(s.t.Context(), lease.Fence(), id, []byte(id), client.PutOptions{})
	require.NoError(s.t, err)
	return lease
}

// isHome checks that the site's deployment has the lock and the content of a document, and no other one has.
func (s *sites) isHome(site, id string) {
	for name, d := range s.deployments {
		direct, err := client.New(client.Config{URL: d.URL})
		require.NoError(s.t, err)
		holders, err := direct.Locks(s.t.Context(), "documents", id)
		require.NoError(s.t, err)
		_, err = direct.Get(s.t.Context(), id, client.GetOptions{})
		if name == s.home[site] {
			assert.Len(s.t, holders.Holders, 1, "%s at %s", id, name)
			assert.NoError(s.t, err)
		} else {
			assert.Empty(s.t, holders.Holders, "%s at %s", id, name)
			assert.ErrorIs(s.t, err, client.ErrNotFound)
		}
	}
}

// hearsOfRelease checks that a socket through the proxy gets the events of a site's document.
func (s *sites) hearsOfRelease(site string, lease *client.Lease) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+site+"/api/documents/"+site+".0/events",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: s.transport()}})
	require.NoError(s.t, err)
	defer conn.CloseNow()
	require.NoError(s.t, lease.Renew(ctx), "the lock is still held")
	require.NoError(s.t, lease.Release(ctx))
	_, text, err := conn.Read(ctx)
	require.NoError(s.t, err)
	assert.Contains(s.t, string(text), remote.NoticeUnlocked)
}

// refusesOthers checks that no deployment takes requests for a site that is not its own, whatever the proxy does.
func (s *sites) refusesOthers(proxy func(*sites) string) {
	assert.Equal(s.t, http.StatusMisdirectedRequest, s.post("unknown.example.com"))
	for site, home := range s.home {
		s.home[site] = map[string]string{"one": "two", "two": "one"}[home]
	}
	s.gate = proxy(s)
	for site := range s.home {
		assert.Equal(s.t, http.StatusMisdirectedRequest, s.post(site), "a mistake in the map makes no second lock")
	}
}

// post tries to lock a document of a site through the proxy.
func (s *sites) post(site string) (status int) {
	c := &http.Client{Transport: s.transport()}
	response, err := c.Post("http://"+site+"/api/documents/"+site+".1/lock", "application/json", nil)
	require.NoError(s.t, err)
	require.NoError(s.t, response.Body.Close())
	return response.StatusCode
}

func (s *sites) client(site string) *client.Client {
	c, err := client.New(client.Config{URL: "http://" + site, Patience: patience, HTTP: &http.Client{Transport: s.transport()}})
	require.NoError(s.t, err)
	return c
}

// transport sends everything to the proxy, as the names of all sites resolve to it.
func (s *sites) transport() *http.Transport {
	to := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.gate)
	}}
	s.t.Cleanup(to.CloseIdleConnections)
	return to
}

// byName is a proxy that chooses by the host name. It uses the map of the time of the call.
func (s *sites) byName() http.Handler {
	to := map[string]http.Handler{}
	for site, home := range s.home {
		to[site] = forward(s.deployments[home].Address())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next, ok := to[r.Host]; ok {
			next.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusMisdirectedRequest)
	})
}

// haproxy runs HAProxy with the file for operators. The addresses are those of the test, and there is no certificate.
func (s *sites) haproxy() (address string) {
	text, err := os.ReadFile("../../deploy/haproxy-sites.cfg")
	require.NoError(s.t, err)
	address = ownHost(s.t) + ":8080"
	dir := s.t.TempDir()
	var lines strings.Builder
	for site, home := range s.home {
		fmt.Fprintln(&lines, site, home)
	}
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "sites.map"), []byte(lines.String()), 0o600))
	config := strings.NewReplacer("maxconn 20000", "maxconn 1000", ":443 ssl crt /etc/haproxy/sites.pem", address, "/etc/haproxy/", dir+"/",
		"10.0.0.1:8080", s.deployments["one"].Address(), "10.0.1.1:8080", s.deployments["two"].Address()).Replace(string(text))
	file := filepath.Join(dir, "haproxy.cfg")
	require.NoError(s.t, os.WriteFile(file, []byte(config), 0o600))
	process := exec.Command("haproxy", "-db", "-f", file)
	process.Stderr = os.Stderr
	require.NoError(s.t, process.Start())
	s.t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	require.Eventually(s.t, func() bool {
		response, err := http.Get("http://" + address)
		return err == nil && response.Body.Close() == nil
	}, patience, 20*time.Millisecond)
	return address
}

// readMap returns the deployments by site, of the file for operators.
func readMap(t *testing.T) map[string]string {
	text, err := os.ReadFile("../../deploy/sites.map")
	require.NoError(t, err)
	home := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); words[0] != "#" {
			home[words[0]] = words[1]
		}
	}
	require.Len(t, home, 3)
	return home
}
