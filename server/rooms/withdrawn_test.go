package rooms

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// The permission of a participant is withdrawn, or its token expires. It receives no further state, and its socket ends.
func TestAParticipantWithoutPermissionHearsNoMore(t *testing.T) {
	a := start(t, Config{Store: kvtest.Open(t)})
	ann := connect(t, a)
	id := ann.create("Ann")
	ann.info()
	var withdrawn atomic.Bool
	a.config.Identify = func(http.ResponseWriter, *http.Request) (string, Access, bool) {
		return "", func(string, bool) bool { return !withdrawn.Load() }, true
	}
	ben := connect(t, a)
	ben.enter(id, "Ben")
	ben.info()
	withdrawn.Store(true)
	ann.answer("secret")
	select {
	case text, open := <-ben.inbox:
		assert.False(t, open, text)
	case <-time.After(limit):
		t.Error("the socket stays open")
	}
}
