package kv_test

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

func secureURL(t *testing.T) string {
	return strings.Replace(kvtest.FreeURL(t), "http://", "https://", 1)
}

// shortly limits an attempt that must fail.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func openMember(t *testing.T, ctx context.Context, m kv.Member) (*kv.Store, error) {
	s, err := kv.Open(ctx, kv.Config{DataDir: kvtest.Dir(t), Member: m, Timeout: 2 * time.Second})
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
	}
	return s, err
}

// serialAt is the serial number of the certificate that a member shows to another one.
func serialAt(t *testing.T, address string, as kv.TLSFiles) int64 {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(as.Cert, as.Key)
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// Members talk to those alone that show a certificate of their authority. A renewed one is in use at once.
func TestMembersWithCertificates(t *testing.T) {
	t.Parallel()
	authority, other := kvtest.NewAuthority(t), kvtest.NewAuthority(t)
	first := kv.Member{PeerURL: secureURL(t), ClientURL: secureURL(t), TLS: authority.Issue("first", 11, time.Hour)}
	one, err := openMember(t, t.Context(), first)
	require.NoError(t, err)
	join := func(ctx context.Context, files kv.TLSFiles) (*kv.Store, error) {
		return openMember(t, ctx, kv.Member{PeerURL: secureURL(t), Join: []string{first.ClientURL}, TLS: files})
	}
	two, err := join(t.Context(), authority.Issue("second", 12, time.Hour))
	require.NoError(t, err)
	_, err = one.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", []byte("text"))}})
	require.NoError(t, err)
	found, _, err := two.Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, "text", string(found.Value))

	// A certificate of another authority, and one of both: this member trusts the cluster, and the cluster does not trust it.
	foreign := other.Issue("foreign", 1, time.Hour)
	_, err = join(shortly(t), foreign)
	assert.ErrorContains(t, err, "unknown authority")
	foreign.CA = first.TLS.CA
	_, err = join(shortly(t), foreign)
	assert.ErrorContains(t, err, "certificate")
	_, err = kv.Open(shortly(t), kv.Config{Endpoints: []string{first.ClientURL}, TLS: kv.TLSFiles{CA: first.TLS.CA}, Timeout: time.Second})
	assert.ErrorContains(t, err, "certificate required")

	assert.Equal(t, int64(11), serialAt(t, first.PeerURL, first.TLS))
	renewed := authority.Issue("first", 21, time.Hour)
	assert.Equal(t, int64(21), serialAt(t, first.PeerURL, renewed))
	assert.Equal(t, int64(21), serialAt(t, first.ClientURL, renewed))
	_, err = two.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", []byte("later"))}})
	require.NoError(t, err, "open connections go on")
	_, err = join(t.Context(), authority.Issue("third", 13, time.Hour))
	require.NoError(t, err)
}

// Certificates that cannot work are refused at the start, with the file and the reason.
func TestUnusableCertificatesAreRefused(t *testing.T) {
	t.Parallel()
	a := kvtest.NewAuthority(t)
	good, expired, other := a.Issue("good", 1, time.Hour), a.Issue("expired", 2, -time.Hour), a.Issue("other", 3, time.Hour)
	member := kv.Member{PeerURL: secureURL(t)}
	for want, files := range map[string]kv.TLSFiles{
		"has expired":                             expired,
		"does not match":                          {Cert: good.Cert, Key: other.Key, CA: good.CA},
		"no such file":                            {Cert: good.Cert + "x", Key: good.Key, CA: good.CA},
		"no certificate in PEM":                   {Cert: good.Cert, Key: good.Key, CA: good.Key},
		"need a certificate":                      {Cert: good.Cert, Key: good.Key},
		"a certificate and its key go":            {},
		"such as http://10.0.0.1:2380 (with cert": {},
	} {
		m := member
		m.TLS = files
		var err error
		if strings.HasPrefix(want, "a certificate and") {
			_, err = kv.Open(t.Context(), kv.Config{Endpoints: []string{"127.0.0.1:1"}, TLS: kv.TLSFiles{Cert: good.Cert}})
		} else {
			_, err = kv.Open(t.Context(), kv.Config{DataDir: kvtest.Dir(t), Member: m})
		}
		assert.ErrorContains(t, err, want)
	}
	_, err := kv.Open(t.Context(), kv.Config{DataDir: kvtest.Dir(t), Member: kv.Member{PeerURL: kvtest.FreeURL(t), TLS: good}})
	assert.ErrorContains(t, err, "such as https://10.0.0.1:2380")
}

// An external cluster asks for a certificate and a password. Without them, the error says what is missing.
func TestExternalClusterWithCertificatesAndUsers(t *testing.T) {
	t.Parallel()
	a := kvtest.NewAuthority(t)
	server, mine := a.Issue("etcd", 1, time.Hour), a.Issue("holdfast", 2, time.Hour)
	at, err := url.Parse(secureURL(t))
	require.NoError(t, err)
	settings := embed.NewConfig()
	settings.BcryptCost = 4
	settings.Dir, settings.LogLevel, settings.ListenPeerUrls = t.TempDir(), "fatal", nil
	settings.ListenClientUrls, settings.AdvertiseClientUrls = []url.URL{*at}, []url.URL{*at}
	settings.ClientTLSInfo.CertFile, settings.ClientTLSInfo.KeyFile = server.Cert, server.Key
	settings.ClientTLSInfo.TrustedCAFile, settings.ClientTLSInfo.ClientCertAuth = server.CA, true
	etcd, err := embed.StartEtcd(settings)
	require.NoError(t, err)
	t.Cleanup(etcd.Close)
	open := func(files kv.TLSFiles, user, password string, limit time.Duration) error {
		s, err := kv.Open(t.Context(), kv.Config{Endpoints: []string{at.Host}, TLS: files, User: user, Password: password, Timeout: limit})
		if err == nil {
			_, err = s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", nil)}})
			assert.NoError(t, s.Close())
		}
		return err
	}
	require.NoError(t, open(mine, "", "", time.Minute))
	assert.ErrorContains(t, open(kv.TLSFiles{CA: mine.CA}, "", "", time.Second), "certificate required")
	assert.ErrorContains(t, open(kvtest.NewAuthority(t).Issue("x", 3, time.Hour), "", "", time.Second), "unknown authority")

	pair, err := tls.LoadX509KeyPair(mine.Cert, mine.Key)
	require.NoError(t, err)
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{at.String()}, TLS: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}})
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	_, err = root.UserAdd(t.Context(), "root", "secret")
	require.NoError(t, err)
	_, err = root.UserGrantRole(t.Context(), "root", "root")
	require.NoError(t, err)
	_, err = root.AuthEnable(t.Context())
	require.NoError(t, err)
	require.NoError(t, open(mine, "root", "secret", time.Minute))
	assert.ErrorContains(t, open(mine, "root", "wrong", time.Minute), "authentication failed")
}

// A cluster that began without certificates gets them one member after the other, and keeps what it has.
func TestClusterGetsCertificates(t *testing.T) {
	t.Parallel()
	a := kvtest.NewAuthority(t)
	members := make([]kv.Config, 3)
	stores := make([]*kv.Store, 3)
	open := func(i int) {
		s, err := kv.Open(t.Context(), members[i])
		require.NoError(t, err, "member %d", i)
		stores[i] = s
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
	}
	for i := range members {
		members[i] = kv.Config{DataDir: kvtest.Dir(t), Member: kv.Member{PeerURL: kvtest.FreeURL(t), ClientURL: kvtest.FreeURL(t)}}
		if i > 0 {
			members[i].Member.Join = []string{members[0].Member.ClientURL}
		}
		open(i)
	}
	secure := func(text string) string { return strings.Replace(text, "http://", "https://", 1) }
	for i := range members {
		require.NoError(t, stores[i].Close())
		m := &members[i].Member
		m.TLS, m.PeerURL, m.ClientURL = a.Issue(m.PeerURL[len("http://"):], int64(i+10), time.Hour), secure(m.PeerURL), secure(m.ClientURL)
		for j := range m.Join {
			m.Join[j] = secure(m.Join[j])
		}
		open(i)
		for j, s := range stores {
			require.Eventually(t, func() bool {
				_, err := s.Commit(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("k", []byte{byte(i)})}})
				return err == nil
			}, 30*time.Second, 10*time.Millisecond, "member %d after %d", j, i)
		}
	}
}
