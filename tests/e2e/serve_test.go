package e2e

import (
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// A server is a running "holdfast serve", with the operations of these tests on its pages.
type server struct{ *serving.Server }

// serve runs the server with its own data directory until the test ends.
func serve(t *testing.T, flags ...string) server {
	t.Helper()
	return server{serving.Run(t, append([]string{"--data-dir", t.TempDir()}, flags...)...)}
}

// profiles starts this many browsers, each with its own profile: they share only the server.
func profiles(t *testing.T, count int) []*browser.Browser {
	t.Helper()
	list := make([]*browser.Browser, count)
	for i := range list {
		list[i] = browser.Start(t, quick)
	}
	return list
}
