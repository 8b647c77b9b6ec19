package httpapi

import (
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/server/sessions"
)

// limit is a limit of requests, with the key under which it counts those of one client.
type limit struct {
	of  *sessions.Limiter
	key string
}

// sharedLimits returns the limits that a session shares with others: that of its address, then that of its user.
func (a *API) sharedLimits(r *http.Request, s sessions.Session) []limit {
	limits := []limit{{a.addresses, a.network(r)}}
	if s.User.SignedIn() {
		limits = append(limits, limit{a.users, s.User.Name})
	}
	return limits
}

func (a *API) ownLimit(s sessions.Session) limit { return limit{a.limits, s.HolderID} }

// ownFirst returns the limits of a session that is known. Its own limit comes first, so a session at its limit takes nothing from the others
// of its user and its address.
func (a *API) ownFirst(r *http.Request, s sessions.Session) []limit {
	limits := append(a.sharedLimits(r, s), a.ownLimit(s))
	slices.Reverse(limits)
	return limits
}

// within counts something by count in one limit after the other, until one refuses it.
func within(limits []limit, count func(l *sessions.Limiter, key string, now time.Time) (retryAfter int, ok bool)) error {
	now := time.Now()
	for _, l := range limits {
		if after, ok := count(l.of, l.key, now); !ok {
			return &rateError{after}
		}
	}
	return nil
}

// noteLimited counts in the metrics that a limit has refused a request.
func (a *API) noteLimited(err error) error {
	if err != nil {
		a.Metrics.RateLimited.Inc()
	}
	return err
}

// newFirst returns the limits of a new session. That of its address's new sessions comes first, so those above it take nothing from the
// sessions that are known.
func (a *API) newFirst(r *http.Request, s sessions.Session) []limit {
	return append([]limit{{a.newcomers, a.network(r)}}, a.sharedLimits(r, s)...)
}

// countRequest counts a request. A session without recent requests counts as a new one of its address, so an invented secret brings no new
// allowance.
func (a *API) countRequest(r *http.Request, s sessions.Session) error {
	limits := a.ownFirst(r, s)
	if s.New || !a.limits.Known(s.HolderID) {
		limits = a.newFirst(r, s)
		if !s.New {
			limits = append(limits, a.ownLimit(s))
		}
	}
	return a.noteLimited(within(limits, (*sessions.Limiter).Allow))
}

// countMore counts a request as n further ones, and refuses it if they exceed a limit.
func (a *API) countMore(r *http.Request, s sessions.Session, n int) error {
	return a.noteLimited(a.more(r, s, n))
}

// allowMore counts a request as n further ones, and reports whether it may go on.
func (a *API) allowMore(r *http.Request, s sessions.Session, n int) bool {
	return a.more(r, s, n) == nil
}

func (a *API) more(r *http.Request, s sessions.Session, n int) error {
	limits := a.ownFirst(r, s)
	if s.New {
		limits = a.sharedLimits(r, s)
	}
	return within(limits, func(l *sessions.Limiter, key string, now time.Time) (int, bool) {
		return l.AllowMore(key, now, n)
	})
}

// countUnknown counts a request that has no session as one of a new session.
func (a *API) countUnknown(r *http.Request) error {
	return a.noteLimited(within(a.newFirst(r, sessions.Session{}), (*sessions.Limiter).Allow))
}

// MaySend counts a message of a socket as a request, and reports whether it may come now.
func (a *API) MaySend(r *http.Request, s sessions.Session) bool {
	return within(a.ownFirst(r, s), (*sessions.Limiter).Allow) == nil
}
