// Package remotetest contains the suite that every server must pass in the tests of package remote: the real server,
// and the fake one in memory and in virtual time.
package remotetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// Document is the id of the document that all tests lock.
const Document = "project"

// World is a server and the browsers that reach it.
type World struct {
	// Browser returns a page's connection to the server. Browsers with one session have one cookie; origin is that of
	// the page, "" for the server's own.
	Browser func(session, origin string) remote.Server
	// Visitor returns the connection of a page whose browser visits the server for the first time.
	Visitor func() remote.Server
	// Waiting returns once so many requests wait for the document, or for places below it.
	Waiting func(t *testing.T, n int)
}

// RunServer runs the suite. within runs a test against a server in which nothing is locked and no content is stored. The server keeps a
// lease that nobody renews for the TTL.
func RunServer(t *testing.T, within func(t *testing.T, ttl time.Duration, test func(*testing.T, World))) {
	for _, c := range []struct {
		name string
		run  func(*harness)
	}{
		{"a lease is granted, renewed and released", testLease},
		{"others may neither renew nor release it", testOthers},
		{expires, testExpiry},
		{"a lock that is held is denied", testDenied},
		{"waiters are granted in order", testOrder},
		{"a wait ends at its time", testWaitEnds},
		{"modes exclude each other", testModes},
		{"slots are numbered", testSlots},
		{"an acquisition is granted once", testGrantedOnce},
		{"a ticket keeps the place in line", testTicketKeepsPlace},
		{"a later request ends an earlier one with its ticket", testReplacedRequest},
		{"a ticket is for one lock", testTicketForOneLock},
		{"a released acquisition is over", testReleasedIsOver},
		{"giving up ends an acquisition, whatever became of it", testGivingUp},
		{"a first visit is granted nothing before it has its session", testFirstVisit},
		{"the lease of an ended tab is refused by name, then replaced", testLeftBehind},
		{"a request with pass_on takes over before all waiters", testPassedOn},
		{"fresh ends what is not exact", testFresh},
		{"two origins are two owners", testOrigins},
		{"browsers with one secret exclude each other", testBrowsersWithOneSecret},
		{"contents are fenced", testContents},
		{"the holder passes the lock on to the client that asks", testAskAccepted},
		{"the holder refuses", testAskRefused},
		{"the holder is silent", testAskSilent},
		{"a holder that asks keeps its lock, and nobody is asked", testAskOwn},
		{"a question about a document below asks nobody else", testAskBelow},
		{"the holder of a document below is asked about the one around it", testAskAround},
		{"the holders of several documents below are asked at once", testAskSeveral},
		{"two documents are asked for at once", testAskTwo},
		{"a holder of a slot asks for the document", testAskOwnSlot},
	} {
		t.Run(c.name, func(t *testing.T) {
			ttl := 10 * time.Minute // however slow this machine is: most tests send no heartbeats
			if c.name == expires {
				ttl = 2 * time.Second
			}
			within(t, ttl, func(t *testing.T, w World) {
				c.run(&harness{T: t, World: w, ttl: ttl, a: w.Browser("A", ""), b: w.Browser("B", ""), c: w.Browser("C", "")})
			})
		})
	}
}

type harness struct {
	*testing.T
	World
	ttl     time.Duration
	a, b, c remote.Server
}

// expires is the name of the test that waits for the end of a TTL.
const expires = "a lease ends at its TTL, not before"

// patience bounds each request.
const patience = 30 * time.Second

func (h *harness) send(s remote.Server, r remote.Request) remote.Reply {
	h.Helper()
	ctx, stop := context.WithTimeout(h.Context(), patience)
	defer stop()
	reply, err := s.Send(ctx, r)
	require.NoError(h, err)
	return reply
}

// sent is a pending request.
type sent struct {
	reply chan remote.Reply
	stop  context.CancelFunc
}

// begin sends a request that must wait, and returns once n requests wait.
func (h *harness) begin(s remote.Server, r remote.Request, n int) sent {
	h.Helper()
	ctx, stop := context.WithTimeout(h.Context(), patience)
	w := sent{make(chan remote.Reply, 1), stop}
	go func() {
		defer stop()
		reply, err := s.Send(ctx, r)
		if err == nil {
			w.reply <- reply
		}
		close(w.reply)
	}()
	h.Waiting(h.T, n)
	return w
}

// answered waits for the reply.
func (h *harness) answered(w sent) remote.Reply {
	h.Helper()
	reply, ok := <-w.reply
	require.True(h, ok, "no reply came")
	return reply
}

const (
	lockPath  = "/api/documents/" + Document + "/lock"
	locksPath = "/api/locks"
	longWait  = "20000"
)

// lock asks for the document.
func lock(query ...string) remote.Request {
	return remote.Request{Method: "POST", Path: lockPath + "?" + strings.Join(query, "&"), Fields: map[string]any{}}
}

// waits makes a request one that waits.
func waits(r remote.Request) remote.Request {
	if r.Path == locksPath {
		return with(r, "wait_ms", int64(20_000))
	}
	r.Path += "&wait_ms=" + longWait
	return r
}

// places asks for places below the document.
func places(paths ...string) remote.Request {
	var list [][]string
	for _, p := range paths {
		path := []string{"documents", Document}
		if p != "" {
			path = append(path, strings.Split(p, "/")...)
		}
		list = append(list, path)
	}
	return remote.Request{Method: "POST", Path: locksPath, Fields: map[string]any{"paths": list, "mode": "exclusive", "slots": 1}}
}

// with returns the request with one more field.
func with(r remote.Request, name string, value any) remote.Request {
	fields := map[string]any{name: value}
	for k, v := range r.Fields {
		if k != name {
			fields[k] = v
		}
	}
	r.Fields = fields
	return r
}

// named gives a request a ticket.
func named(r remote.Request, ticket string) remote.Request {
	if r.Path == locksPath {
		return with(r, "ticket", ticket)
	}
	r.Path += "&ticket=" + ticket
	return r
}

// inBrowser names the browser of a request.
func inBrowser(browser string, r remote.Request) remote.Request {
	if r.Path == locksPath {
		return with(r, "browser", browser)
	}
	r.Path += "&browser=" + browser
	return r
}

func of(method string, token int64) remote.Request {
	return remote.Request{Method: method, Path: lockPath, Token: token}
}

func ofLease(method, lease string) remote.Request {
	return remote.Request{Method: method, Path: locksPath + "/" + lease}
}

func giveUp(ticket string) remote.Request {
	return remote.Request{Method: "DELETE", Path: locksPath + "?ticket=" + ticket}
}

// granted asks and must be granted.
func (h *harness) granted(s remote.Server, r remote.Request) remote.Reply {
	h.Helper()
	return h.isGrant(h.send(s, r))
}

func (h *harness) isGrant(reply remote.Reply) remote.Reply {
	h.Helper()
	require.Equal(h, 200, reply.Status, "%+v", reply)
	require.Positive(h, reply.Token)
	return reply
}

// refused must get that answer.
func (h *harness) refused(reply remote.Reply, status int, code string) {
	h.Helper()
	require.Equal(h, status, reply.Status, "%+v", reply)
	require.Equal(h, code, reply.Error)
}

// free must find the document free, for another client that does not wait.
func (h *harness) free() {
	h.Helper()
	another := h.Browser("another", "")
	reply := h.granted(another, lock())
	require.Equal(h, 200, h.send(another, of("DELETE", reply.Token)).Status)
}
