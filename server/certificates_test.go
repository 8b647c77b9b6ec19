package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The certificates for etcd and for members, and the password, reach the store: what cannot be used is refused there.
func TestUnusableCertificatesOfTheStore(t *testing.T) {
	t.Parallel()
	expired := kvtest.NewAuthority(t).Issue("expired", 1, -time.Hour)
	for want, change := range map[string]func(*server.Config){
		"has expired at":                         func(c *server.Config) { c.PeerURL, c.Blobs, c.PeerTLS = "https://127.0.0.1:1", t.TempDir(), expired },
		"the certificate " + expired.Cert:        func(c *server.Config) { c.Etcd, c.Blobs, c.EtcdTLS = []string{"127.0.0.1:1"}, t.TempDir(), expired },
		"--peer-ca need --peer-url":              func(c *server.Config) { c.PeerTLS = kv.TLSFiles{CA: "x"} },
		"--etcd-user and --prefix need":          func(c *server.Config) { c.EtcdUser = "root" },
		"--prefix need --etcd":                   func(c *server.Config) { c.Prefix = "app" },
		"a prefix has up to 128 visible":         func(c *server.Config) { c.Etcd, c.Blobs, c.Prefix = []string{"127.0.0.1:1"}, t.TempDir(), "an app" },
		"the password for etcd cannot be":        func(c *server.Config) { c.Etcd, c.Blobs, c.EtcdPassword = []string{"127.0.0.1:1"}, t.TempDir(), "none" },
		"is not a URL of a member, such as http": func(c *server.Config) { c.PeerURL, c.Blobs = "https://127.0.0.1:1", t.TempDir() },
	} {
		c := server.DefaultConfig()
		c.DataDir = kvtest.Dir(t)
		change(&c)
		_, err := server.Start(t.Context(), c, nil)
		assert.ErrorContains(t, err, want)
	}
}
