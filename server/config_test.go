package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server"
)

// A setting that cannot work is refused at the start, with the name of its flag.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]func(*server.Config){
		"--lock-ttl must be positive":                            func(c *server.Config) { c.LockTTL = 0 },
		"--room-idle must be positive":                           func(c *server.Config) { c.RoomIdle = 0 },
		"--room-dead must be at least twice --room-heartbeat":    func(c *server.Config) { c.RoomDead = 2*c.RoomHeartbeat - time.Millisecond },
		"--burst, --new-burst, --address-burst and --user-burst": func(c *server.Config) { c.Burst = 0 },
		"--host is a name":                                       func(c *server.Config) { c.Hosts = []string{"https://locks.example.com"} },
		"or * alone":                                             func(c *server.Config) { c.Hosts = []string{"*.example.com"} },
		"--groups-header needs --user-header":                    func(c *server.Config) { c.GroupsHeader = "X-Groups" },
		"--user-header needs --trusted-proxy":                    func(c *server.Config) { c.UserHeader = "X-User" },
		"--keep is from 1 to":                                    func(c *server.Config) { c.Keep = 0 },
		"--max-content must be positive, and --quota":            func(c *server.Config) { c.Quota = 1 },
		"name their bucket with --blobs":                         func(c *server.Config) { c.Etcd = []string{"127.0.0.1:2379"} },
		"they do not go with --etcd":                             func(c *server.Config) { c.Etcd, c.Blobs, c.PeerURL = []string{"127.0.0.1:2379"}, "b", "http://a:1" },
		"--prefix need --etcd":                                   func(c *server.Config) { c.Prefix = "a" },
		"--join, --client-url and --peer-addr need --peer-url":   func(c *server.Config) { c.Join = []string{"http://a:1"} },
		"--client-addr needs --client-url, and --replace needs":  func(c *server.Config) { c.Replace = "http://a:1" },
	} {
		c := server.DefaultConfig()
		c.DataDir = t.TempDir()
		set(&c)
		_, err := server.Start(t.Context(), c, nil)
		assert.ErrorContains(t, err, want)
	}
}
