package rooms

import (
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Config says what rooms stand on. Store is needed; every zero is the default of its field.
type Config struct {
	Store Store
	// Instance names this server among those that share the store. By default it is random.
	Instance string
	// Origins are patterns of further origins that may open sockets, as "https://*.example.com"; the
	// request's own host always may.
	Origins []string
	// Identify runs before each upgrade. It returns what stands for the session of the request, "" for none: not the secret itself, since
	// it is stored with the participant; and what the session may do. ok is false when it has answered the request with an error. Nil
	// lets everybody in, without a session.
	Identify func(http.ResponseWriter, *http.Request) (session string, may Access, ok bool)
	Log      *slog.Logger
	// Now is the wall clock that idle rooms are measured by.
	Now func() time.Time

	// Grace is how long a participant whose socket closed keeps its place. 2 s.
	Grace time.Duration
	// Idle is how long a room may go unchanged before it is closed, IdleScan how often that is looked
	// for. 30 min, 5 min.
	Idle, IdleScan time.Duration
	// Heartbeat is how often this instance shows that it lives and looks at the others, Dead how long one
	// must have shown nothing to be taken for dead. 5 s, 20 s.
	Heartbeat, Dead time.Duration
	// Ping is the pause between pings; two that are missed end the socket. 20 s.
	Ping time.Duration
	// MessageLimit bounds how long one message may take to arrive or to be written. 10 s.
	MessageLimit time.Duration
	// StoreLimit bounds how long a message may take to be carried out. 5 s.
	StoreLimit time.Duration
}

// Access reports whether a client may see a room or, with change, enter and change it. It is asked for every message; nil allows
// everything. A room that a client may not see is none to it.
type Access func(room string, change bool) bool

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("rooms: a store is needed")
	}
	if c.Instance == "" {
		c.Instance = newToken()
	}
	if c.Identify == nil {
		c.Identify = func(http.ResponseWriter, *http.Request) (string, Access, bool) { return "", nil, true }
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
		return c, errors.New("rooms: an instance must be given two heartbeats before it is taken for dead")
	}
	return c, nil
}
