package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/sockets"
	"github.com/holdfast-dev/holdfast/server/users"
)

// maxIncoming is the longest message that a client may send here, although no message is expected.
const maxIncoming = 4 << 10

// streamEvents serves a document's events over a WebSocket.
func (a *API) streamEvents(w http.ResponseWriter, r *http.Request, s sessions.Session, id string) error {
	after, err := resumeAfter(r)
	if err != nil {
		return err
	}
	if a.drain.Err() != nil {
		return errStopping
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		return errUpgrade
	}
	end, ok := a.open.begin(a.network(r), a.MaxSockets)
	if !ok {
		return errTooManySockets
	}
	defer end()
	if !a.beginSocket() {
		return errStopping
	}
	defer a.sockets.Done()
	conn, err := websocket.Accept(&handshake{a.paced(w, r)}, r, &websocket.AcceptOptions{
		OriginPatterns: a.Origins, Subprotocols: []string{users.SocketProtocol}, OnPingReceived: sockets.Pongs(),
	})
	if err != nil {
		return errHandshake
	}
	a.Metrics.Sockets.Inc()
	defer a.Metrics.Sockets.Dec()
	defer conn.CloseNow()
	conn.SetReadLimit(maxIncoming)
	ctx, cancel := context.WithCancelCause(a.drain)
	defer cancel(nil)
	go readAway(cancel, conn)
	mayRead := func() error { return a.may(s, locks.Document(id), policy.Read) }
	go func() { cancel(cmp.Or(sockets.Ping(ctx, conn, a.Ping, mayRead), errGone)) }()
	turn := func() (func(), error) { return a.mayReplay(ctx, r) }
	err = a.Events.Stream(ctx, id, after, turn, func(text []byte) error {
		if err := mayRead(); err != nil {
			return err
		}
		limited, done := context.WithTimeout(ctx, a.WriteLimit)
		defer done()
		return conn.Write(limited, websocket.MessageText, text)
	})
	a.closeStream(conn, err)
	return nil
}

// mayReplay waits until the socket of a request may read past events from the store.
func (a *API) mayReplay(ctx context.Context, r *http.Request) (end func(), err error) {
	end, ok := a.replays.take(ctx, a.network(r), turnsAtOnce)
	if !ok {
		return nil, context.Cause(ctx)
	}
	return end, nil
}

// handshake passes only the acceptance of a WebSocket on. The answer to a malformed request is an error of the API.
type handshake struct{ http.ResponseWriter }

func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *handshake) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		h.ResponseWriter.WriteHeader(status)
	}
}

func (h *handshake) Write(data []byte) (int, error) { return len(data), nil }

// closeStream closes the socket of a stream that has ended with err, with the status for the client.
func (a *API) closeStream(conn *websocket.Conn, err error) {
	switch {
	case a.drain.Err() != nil:
		_ = conn.Close(websocket.StatusGoingAway, "The server is stopping.")
	case errors.Is(err, events.ErrSlow):
		_ = conn.Close(websocket.StatusTryAgainLater, "Too slow; resume with ?after=.")
	case errors.Is(err, errNotAllowed), errors.Is(err, errUnauthenticated):
		_ = conn.Close(websocket.StatusPolicyViolation, err.Error())
	case errors.Is(err, errGone):
	default:
		_ = conn.Close(websocket.StatusInternalError, "Resume with ?after=.")
	}
}

// beginSocket registers a socket, unless the server is stopping.
func (a *API) beginSocket() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.drain.Err() != nil {
		return false
	}
	a.sockets.Add(1)
	return true
}

func resumeAfter(r *http.Request) (int64, error) {
	if !r.URL.Query().Has("after") {
		return events.Now, nil
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil || after < 0 {
		return 0, invalid("after is the revision of the last event seen.")
	}
	return after, nil
}

var errGone = errors.New("the client has gone")

// readAway discards the client's messages until the connection ends. It has no other context: the end of that context
// would cut the connection before the close message.
func readAway(cancel context.CancelCauseFunc, conn *websocket.Conn) {
	for {
		if _, _, err := conn.Read(context.Background()); err != nil {
			cancel(errGone)
			return
		}
	}
}
