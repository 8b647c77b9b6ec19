package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// timed is a response whose time ends at a deadline.
type timed struct {
	http.ResponseWriter
	deadline time.Time
}

func (r *timed) SetWriteDeadline(at time.Time) error { r.deadline = at; return nil }

// The time for the response to a change begins with the response. Until then, the server of HTTP/2 must not end the request. The time for the
// response to any other request is that of the listener.
func TestTheTimeOfAResponseBeginsWithIt(t *testing.T) {
	const limit, work = 30 * time.Second, 10 * time.Minute
	for name, respond := range map[string]func(http.ResponseWriter){
		"with a status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) },
		"with a body":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("text")) },
		"empty":         func(http.ResponseWriter) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &API{Config: Config{WriteLimit: limit}}
				w := &timed{ResponseWriter: httptest.NewRecorder()}
				a.EnsureResponse(http.HandlerFunc(func(inner http.ResponseWriter, _ *http.Request) {
					time.Sleep(work)
					assert.True(t, w.deadline.After(time.Now()))
					respond(inner)
				})).ServeHTTP(w, httptest.NewRequest("COPY", "/dav/c", nil))
				assert.Equal(t, time.Now().Add(limit), w.deadline)
			})
		})
	}
	w := &timed{ResponseWriter: httptest.NewRecorder()}
	a := &API{Config: Config{WriteLimit: limit}}
	a.EnsureResponse(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Zero(t, w.deadline)
}
