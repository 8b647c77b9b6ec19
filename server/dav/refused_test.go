package dav

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A program holds the lock of a file in a collection, and a change of the whole collection is refused. The lock of the file stays.
func TestARefusedChangeKeepsTheLocksOfItsProgram(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, destination, match, foreign string
		status                              int
	}{
		"DELETE of another content": {"DELETE", "", `"other"`, "", http.StatusPreconditionFailed},
		"MOVE of another content":   {"MOVE", "/dav/o", `"other"`, "", http.StatusPreconditionFailed},
		"MOVE to a locked file":     {"MOVE", "/dav/o", "*", "o", http.StatusLocked},
		"COPY of another content":   {"COPY", "/dav/d", `"other"`, "", http.StatusPreconditionFailed},
		"MOVE of a locked file":     {"MOVE", "/dav/d", "*", "o", http.StatusLocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWaited(t)
			own := s.lock("ann1", place{"d", "x"}.path())
			if tt.foreign != "" {
				s.lock("bob", place{tt.foreign}.path())
			}
			from := "/dav/d"
			if tt.destination == from {
				from = "/dav/o"
			}
			answer := s.answer(tt.method, from, "", "Destination", tt.destination, "If-Match", tt.match, "If", "</dav/d/x> (<"+tokenOf(own)+">)")
			assert.Equal(t, tt.status, answer.Code, answer.Body.String())
			assert.True(t, s.stands(own))
		})
	}
}
