// Package httpapi is the HTTP interface of the lock table, the contents and the events. It checks requests, calls the
// packages behind it and translates their results into responses of the API.
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/metrics"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/users"
	"github.com/holdfast-dev/holdfast/server/users/oidc"
)

// Config configures the API. All fields without a default are required.
type Config struct {
	Locks    *locks.Table
	Asks     *asks.Relay
	Contents *content.Store
	Events   *events.Hub
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Sessions sessions.Source
	// Origins may use the API from a browser besides the server's own origin, as https://host[:port].
	Origins []string

	// LockTTL is how long a document's lock lasts without a heartbeat.
	LockTTL time.Duration
	// MaxWait bounds wait_ms.
	MaxWait time.Duration
	// Ping is the pause between pings on a socket.
	Ping time.Duration
	// WriteLimit is the maximum time to write one message, and to write one response without its waiting time.
	WriteLimit time.Duration

	// Rate and Burst bound the requests of one session. NewRate and NewBurst bound the sessions of one address that
	// this server has not seen lately. AddressRate and AddressBurst bound all requests of one address, whatever
	// sessions they claim.
	Rate, NewRate, AddressRate    float64
	Burst, NewBurst, AddressBurst int
	// UserRate and UserBurst bound the requests of one user who has signed in, in all sessions.
	UserRate  float64
	UserBurst int
	// Address returns the address of the client; nil means the other end of its connection.
	Address func(*http.Request) string
	// MaxSockets limits the sockets of one address; 0 is no limit.
	MaxSockets int
	// MaxContent is the maximum size of a content in bytes.
	MaxContent int64
	// LockAll allows a lock on all documents at once.
	LockAll bool
	// Policy returns the present permissions; nil allows everything except breaking locks. SignIn says that users can
	// sign in.
	Policy func() *policy.Policy
	SignIn bool
	// Provider is where users sign in; nil is none.
	Provider *oidc.Verifier
	// Audit is the log of actions that affect other users; nil means none.
	Audit *audit.Log
}

const (
	maxBody = 64 << 10
	// The refusals of a session's messages in rooms that the audit log gets in quick succession, and those that it gets each second later.
	refusalsAtOnce, refusalsPerSecond = 20, 0.1
)

// API serves the paths under /api/.
type API struct {
	Config
	limits, newcomers, addresses, users *sessions.Limiter
	received                            *sessions.Limiter // bounds what the sockets of an address receive
	signedIn                            *sessions.Limiter // knows the sessions whose user is in the audit log
	refusals                            *sessions.Limiter // bounds what the messages of a session's sockets add to the audit log

	origins *http.CrossOriginProtection
	handler http.Handler
	calls   []string // the patterns of all calls

	backups sync.Mutex // held while a backup runs
	bodies  counts     // of writes, in memory
	small   counts     // of other requests, and of small writes
	memory  turns      // of requests that use much memory otherwise
	copies  turns      // of requests that copy contents
	replays turns      // of sockets that read past events from the store
	signIns turns      // of browsers that come back from the provider
	scrapes counts     // of requests for the metrics
	open    counts     // sockets
	mu      sync.Mutex // orders the sockets that begin before those that Drain refuses
	sockets sync.WaitGroup
	drain   context.Context // ends when the sockets must end
	drainer context.CancelFunc
}

// New returns the API.
func New(c Config) (*API, error) {
	a := &API{Config: c, origins: http.NewCrossOriginProtection(),
		limits: sessions.NewLimiter(c.Rate, c.Burst), newcomers: sessions.NewLimiter(c.NewRate, c.NewBurst),
		addresses: sessions.NewLimiter(c.AddressRate, c.AddressBurst), users: sessions.NewLimiter(c.UserRate, c.UserBurst),
		received: sessions.NewLimiter(c.AddressRate, c.AddressBurst),
		signedIn: sessions.NewLimiter(1, 1), refusals: sessions.NewLimiter(refusalsPerSecond, refusalsAtOnce)}
	if a.Policy == nil {
		a.Policy = func() *policy.Policy { return policy.Anonymous }
	}
	if a.Address == nil {
		a.Address = address
	}
	for _, origin := range c.Origins {
		if err := a.origins.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	a.drain, a.drainer = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	for pattern, f := range a.routes() {
		a.calls = append(a.calls, pattern)
		mux.Handle(pattern, a.guard(f))
	}
	mux.HandleFunc("HEAD "+loginPath, OnlyGet)
	mux.HandleFunc("HEAD "+callbackPath, OnlyGet)
	a.calls = append(a.calls, describePattern)
	mux.HandleFunc(describePattern, serveDescription)
	a.handler = a.cors(plainErrors(mux))
	return a, nil
}

// routes returns the calls of the API by their patterns.
func (a *API) routes() map[string]serve {
	return map[string]serve{
		"POST /api/documents/{document}/lock":        a.document(policy.Lock, a.lockDocument),
		"PUT /api/documents/{document}/lock":         a.document(policy.Lock, a.renewDocument),
		"DELETE /api/documents/{document}/lock":      a.document(policy.Read, a.unlockDocument),
		"GET /api/documents/{document}/lock":         a.document(policy.Read, a.showDocument),
		"POST /api/documents/{document}/lock/break":  a.document(policy.Break, a.breakDocument),
		"POST /api/locks/{leaseId}/break":            a.breakLease,
		"POST /api/documents/{document}/lock/ask":    a.document(policy.Lock, a.askForDocument),
		"POST /api/documents/{document}/lock/accept": a.document(policy.Lock, a.acceptAsk),
		"POST /api/documents/{document}/lock/refuse": a.document(policy.Lock, a.refuseAsk),
		"GET /api/documents/{document}/content":      a.document(policy.Read, a.readContent),
		"PUT /api/documents/{document}/content":      a.document(policy.Write, a.writeContent),
		"GET /api/documents/{document}/history":      a.document(policy.Read, a.showHistory),
		"DELETE /api/documents/{document}":           a.document(policy.Write, a.deleteDocument),
		"GET /api/documents":                         a.listDocuments,
		"GET /api/documents/{document}/events":       a.document(policy.Read, a.streamEvents),
		"POST /api/locks":                            a.lockPaths,
		"PUT /api/locks/{leaseId}":                   a.renewLease,
		"DELETE /api/locks/{leaseId}":                a.releaseLease,
		"DELETE /api/locks":                          a.giveUp,
		"GET /api/locks":                             a.showPath,
		"GET /api/backup":                            a.streamBackup,
		"GET /api/session":                           a.showSession,
		"POST /api/session":                          a.signIn,
		"DELETE /api/session":                        a.signOut,
		"GET " + loginPath:                           a.beginSignIn,
		"GET " + callbackPath:                        a.endSignIn,
	}
}

// ServeHTTP serves a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Drain ends the sockets, which clients reopen on another server. It returns when they have ended or ctx has.
func (a *API) Drain(ctx context.Context) {
	a.mu.Lock()
	a.drainer()
	a.mu.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); a.sockets.Wait() }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Identify returns the session of a request after the checks that every request passes, or responds itself.
func (a *API) Identify(w http.ResponseWriter, r *http.Request) (sessions.Session, bool) {
	session, err := a.identify(w, r)
	if err != nil {
		a.fail(w, r, err)
	}
	return session, err == nil
}

// serve responds to the request of a session, unless it returns an error.
type serve func(http.ResponseWriter, *http.Request, sessions.Session) error

// document reads from the path which document a request is about, and checks the permission of the session.
func (a *API) document(what policy.Permission, f func(http.ResponseWriter, *http.Request, sessions.Session, string) error) serve {
	return func(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
		id := r.PathValue("document")
		if !documentID(id) {
			return errDocumentID
		}
		if err := a.may(s, locks.Document(id), what); err != nil {
			return err
		}
		return f(w, r, s, id)
	}
}

func (a *API) guard(f serve) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		session, ok := a.Identify(w, r)
		if !ok {
			return
		}
		err := readableQuery(r)
		if err == nil {
			err = f(w, r, session)
		}
		if err != nil {
			a.Fail(w, r, session, err)
		}
	})
}

// readableQuery fails if r.URL.Query would leave out what it cannot read.
func readableQuery(r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return invalid("The query of the URL is malformed: " + err.Error() + ".")
	}
	return nil
}

// Fail responds with an error. A refusal goes to the audit log.
func (a *API) Fail(w http.ResponseWriter, r *http.Request, s sessions.Session, err error) {
	if errors.Is(err, errNotAllowed) || errors.Is(err, errUnauthenticated) {
		a.noted(r, s, audit.Entry{Event: audit.Refused})
	}
	a.fail(w, r, err)
}

func (a *API) identify(w http.ResponseWriter, r *http.Request) (sessions.Session, error) {
	if !a.mayUpgrade(r) {
		return sessions.Session{}, errOrigin
	}
	return a.identifyBy(r, func() (sessions.Session, error) { return a.Sessions.Of(w, r) })
}

// identifyBy checks the origin and the rate of a request, and returns its session.
func (a *API) identifyBy(r *http.Request, of func() (sessions.Session, error)) (sessions.Session, error) {
	if a.origins.Check(r) != nil {
		return sessions.Session{}, errOrigin
	}
	session, err := of()
	if err != nil {
		if err := a.countUnknown(r); err != nil { // otherwise guesses would fill the audit log
			return session, err
		}
		err = notIdentified(err)
		a.noted(r, session, audit.Entry{Event: audit.Refused})
		return session, err
	}
	if err := a.countRequest(r, session); err != nil {
		return session, err
	}
	if session.User.SignedIn() {
		if !a.signedIn.Known(session.HolderID) {
			a.noted(r, session, audit.Entry{Event: audit.SignedIn})
		}
		a.signedIn.Allow(session.HolderID, time.Now())
	}
	return session, nil
}

// notIdentified explains why a request has no session.
func notIdentified(err error) error {
	switch {
	case errors.Is(err, users.ErrHeader), errors.Is(err, sessions.ErrSessionHeader):
		return invalid(sentence(err))
	case errors.Is(err, users.ErrUnavailable):
		return &apiError{http.StatusServiceUnavailable, "unavailable", sentence(err)}
	case errors.Is(err, users.ErrUnauthenticated):
		return &apiError{http.StatusUnauthorized, "unauthenticated", "The Authorization header must be Bearer with a valid API key or token."}
	}
	return &apiError{http.StatusUnauthorized, "unauthorized", sentence(err)}
}

// mayUpgrade checks the origin of a request for a WebSocket, because browsers let any page open one.
func (a *API) mayUpgrade(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || slices.Contains(a.Origins, origin) {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && strings.EqualFold(from.Host, r.Host)
}

// documentID reports whether a text is a valid id. Browsers treat "." and ".." as steps in a path, however they are
// escaped.
func documentID(id string) bool { return documentPattern.MatchString(id) && id != "." && id != ".." }

var documentPattern = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
