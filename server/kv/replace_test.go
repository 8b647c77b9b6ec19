package kv

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// byName returns a member whose URLs have a name, and that listens on addresses of its own.
func byName(t *testing.T, join ...string) Member {
	t.Helper()
	m := Member{Join: join}
	for _, own := range []struct{ public, at *string }{{&m.PeerURL, &m.PeerAddr}, {&m.ClientURL, &m.ClientAddr}} {
		u, err := url.Parse(freeURL(t))
		require.NoError(t, err)
		*own.at = u.Host
		*own.public = "http://localhost:" + u.Port()
	}
	return m
}

// A member whose files are lost comes back with an empty directory: at the same addresses, or at others with Replace. It
// gets a new identity, keys stay, and a member that runs is not replaced.
func TestMemberIsReplaced(t *testing.T) {
	t.Parallel()
	first := byName(t)
	first.Join = []string{first.ClientURL} // all members may have the same list
	cluster := openMember(t, first)
	second, err := Open(t.Context(), Config{DataDir: shortDir(t), Member: byName(t, first.ClientURL)})
	require.NoError(t, err)
	third := byName(t, first.ClientURL)
	lost, err := Open(t.Context(), Config{DataDir: shortDir(t), Member: third})
	require.NoError(t, err)
	_, err = cluster.Commit(t.Context(), Txn{Then: []Op{Put("key", []byte("value"))}})
	require.NoError(t, err)

	_, err = Open(t.Context(), Config{DataDir: shortDir(t), Member: third})
	require.ErrorContains(t, err, "still runs")
	require.NoError(t, lost.Close())
	former := lost.embedded.etcd.Server.MemberID()
	same := openMember(t, third)
	assert.NotEqual(t, former, same.embedded.etcd.Server.MemberID())

	require.NoError(t, second.Close())
	elsewhere := byName(t, first.ClientURL)
	elsewhere.Replace = second.embedded.etcd.Server.Cfg.PeerURLs.String()
	other := openMember(t, elsewhere)
	e, _, err := other.Get(t.Context(), "key")
	require.NoError(t, err)
	assert.Equal(t, "value", string(e.Value))
	members, err := other.members(t.Context())
	require.NoError(t, err)
	var peers []string
	for _, m := range members {
		assert.False(t, m.IsLearner)
		peers = append(peers, m.PeerURLs...)
	}
	slices.Sort(peers)
	want := []string{first.PeerURL, third.PeerURL, elsewhere.PeerURL}
	slices.Sort(want)
	assert.Equal(t, want, peers)
}

// The cluster removes a member that still runs, because its place was given away while it was cut off. The member reports that, so that its
// process ends and its clients go to another one. Started again, it says so, too.
func TestARemovedMemberEnds(t *testing.T) {
	t.Parallel()
	first := byName(t)
	cluster := openMember(t, first)
	m := byName(t, first.ClientURL)
	removed := openMember(t, m)
	openMember(t, byName(t, first.ClientURL))
	require.NoError(t, retry(t.Context(), func() error {
		_, err := cluster.client.MemberRemove(t.Context(), uint64(removed.embedded.etcd.Server.MemberID()))
		return err
	}))
	select {
	case err := <-removed.Failed():
		require.ErrorContains(t, err, "the cluster has removed this member")
	case <-time.After(time.Minute):
		require.Fail(t, "the member does not report its end")
	}
	require.NoError(t, removed.Close())
	_, err := Open(t.Context(), Config{DataDir: removed.embedded.dir, Member: m})
	require.ErrorContains(t, err, "the cluster has removed this member; let it join with an empty data directory")
}

// A member that does not know the last change yet makes a new one wait. One that does not answer does not.
func TestMemberWaitsUntilItIsKnown(t *testing.T) {
	asked := 0
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/members", r.URL.Path)
		switch asked++; asked {
		case 1:
			_, _ = io.WriteString(w, `[{"peerURLs":["http://slow"]},{"peerURLs":["http://dead"]},{"peerURLs":["http://removed"]}]`)
		case 2:
			_, _ = io.WriteString(w, `[{"peerURLs":["http://slow"]},{"peerURLs":["http://dead"]}]`)
		default:
			_, _ = io.WriteString(w, `[{"peerURLs":["http://slow"]},{"peerURLs":["http://dead"]},{"peerURLs":["http://new"]}]`)
		}
	}))
	defer slow.Close()
	peers := []*etcdserverpb.Member{{PeerURLs: []string{slow.URL}}, {PeerURLs: []string{"http://localhost:1"}}}
	require.NoError(t, known(t.Context(), peers, Member{PeerURL: "http://new"}))
	assert.Equal(t, 3, asked)
}

func TestMemberAddressesAreChecked(t *testing.T) {
	for want, m := range map[string]Member{
		"not an address to listen on": {PeerURL: "http://localhost:1", PeerAddr: "localhost:1"},
		"not a URL of a member":       {PeerURL: "http://localhost:1", Replace: "localhost:2"},
	} {
		_, err := Config{DataDir: "x", Member: m}.withDefaults()
		assert.ErrorContains(t, err, want)
	}
}
