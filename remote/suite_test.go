package remote_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/remote/remotetest"
)

// The fake server behaves as the real one does.
func TestServer(t *testing.T) {
	remotetest.RunServer(t, func(t *testing.T, ttl time.Duration, test func(*testing.T, remotetest.World)) {
		synctest.Test(t, func(t *testing.T) {
			n := newInternet()
			n.ttl = ttl
			test(t, remotetest.World{
				Browser: func(session, origin string) remote.Server {
					return &browser{net: n, session: session, origin: origin}
				},
				Visitor: func() remote.Server { return &browser{net: n} },
				Waiting: func(t *testing.T, want int) {
					t.Helper()
					synctest.Wait()
					n.mu.Lock()
					defer n.mu.Unlock()
					asking := map[*leased]bool{} // one may have several questions
					for _, q := range n.questions {
						asking[q.request] = true
					}
					require.Equal(t, want, len(n.line)+len(asking))
				}})
			time.Sleep(time.Minute) // what it keeps of tickets goes
		})
	})
}
