package rooms

import (
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Config configures [Rooms]. Store is required. The zero value of every other field means its default.
type Config struct {
	Store Store
	// Instance is the name of this server among those that share the store. The default is random.
	Instance string
	// Origins are patterns of further origins that may open sockets, such as "https://*.example.com". The request's
	// own host is always allowed.
	Origins []string
	// Subprotocols are those that a socket may have, as by which its client names a user.
	Subprotocols []string
	// Identify runs before each upgrade. It returns ok = false after it has answered the request with an error. A nil Identify admits every
	// request without a session.
	Identify func(http.ResponseWriter, *http.Request) (c Client, ok bool)
	Log      *slog.Logger
	// Now is the wall clock that measures how long a room has been idle.
	Now func() time.Time

	// Grace is how long a participant keeps its place after its socket closes. Default: 2 s.
	Grace time.Duration
	// Idle is how long a room may stay unchanged before the sweeper closes it. IdleScan is the interval of that
	// check. Defaults: 30 min, 5 min.
	Idle, IdleScan time.Duration
	// Heartbeat is the interval at which this instance renews its sign of life and checks the others. Dead is how
	// long an instance may go without a sign of life before the others treat it as dead. Defaults: 5 s, 20 s.
	Heartbeat, Dead time.Duration
	// Ping is the pause between pings. Two missed pongs end the socket. Default: 20 s.
	Ping time.Duration
	// MessageLimit is the maximum time to receive or to write one message. Default: 10 s.
	MessageLimit time.Duration
	// StoreLimit is the maximum time to carry out one message. Default: 5 s.
	StoreLimit time.Duration
}

// Client is who has sent a request.
type Client struct {
	// Session is an identifier of the session, or "" for none. It is stored with the participant, so it must not be the secret itself.
	Session string
	May     Access
	// Allow counts a message, and reports whether the client may send it now. Otherwise the server reads on a little later. A nil Allow
	// allows all, up to the limit of a socket.
	Allow func() bool
}

// Access reports whether a client may see a room or, with change, enter and change it. The server calls it for every
// message, before it sends a state, and with each ping: the socket of a client that may neither see nor change its room ends. A nil
// Access allows everything. For a client that may not see a room, the room does not exist.
type Access func(room string, change bool) bool

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("rooms: a store is needed")
	}
	if c.Instance == "" {
		c.Instance = newToken()
	}
	if c.Identify == nil {
		c.Identify = func(http.ResponseWriter, *http.Request) (Client, bool) { return Client{}, true }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, d := range []struct {
		is       *time.Duration
		standard time.Duration
	}{
		{&c.Grace, 2 * time.Second}, {&c.Idle, 30 * time.Minute}, {&c.IdleScan, 5 * time.Minute},
		{&c.Heartbeat, 5 * time.Second}, {&c.Dead, 20 * time.Second}, {&c.Ping, 20 * time.Second},
		{&c.MessageLimit, 10 * time.Second}, {&c.StoreLimit, 5 * time.Second},
	} {
		if *d.is == 0 {
			*d.is = d.standard
		}
		if *d.is < 0 {
			return c, errors.New("rooms: a duration is negative")
		}
	}
	if c.Dead < 2*c.Heartbeat {
		return c, errors.New("rooms: Dead must be at least twice Heartbeat")
	}
	return c, nil
}
