package client_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

type testServer struct{ *servertest.Server }

func start(t *testing.T, change func(*server.Config)) testServer {
	t.Helper()
	c := servertest.Unlimited(t)
	if change != nil {
		change(&c)
	}
	return testServer{servertest.Start(t, c)}
}

// startWithUsers starts a server on which the key of a user is their name and "-key". Root may break locks and administer.
func startWithUsers(t *testing.T) testServer {
	return start(t, func(c *server.Config) {
		file := func(name, text string) string {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			return path
		}
		keys := ""
		for _, name := range []string{"ann", "bob", "root"} {
			keys += fmt.Sprintf("%s sha256:%x\n", name, sha256.Sum256([]byte(name+"-key")))
		}
		c.APIKeys = file("keys", keys)
		c.Policy = file("policy", "user:root * admin\nsigned-in documents/hidden\nsigned-in documents/short read lock write max-ttl=5s\nsigned-in * read lock write\n")
	})
}

func (s testServer) client(t *testing.T, c client.Config) *client.Client {
	t.Helper()
	c.URL = s.URL
	made, err := client.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		assert.NoError(t, made.Close(ctx))
	})
	return made
}

func (s testServer) as(t *testing.T, user string) *client.Client {
	return s.client(t, client.Config{Key: user + "-key"})
}

func acquire(t *testing.T, c *client.Client, r client.Request) *client.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), r)
	require.NoError(t, err)
	return l
}

func release(t *testing.T, l *client.Lease) {
	t.Helper()
	require.NoError(t, l.Release(t.Context()))
}
