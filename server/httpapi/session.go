package httpapi

import (
	"errors"
	"net/http"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/users"
)

// showSession responds with the signed-in user, and whether users can sign in.
func (a *API) showSession(w http.ResponseWriter, _ *http.Request, s sessions.Session) error {
	writeJSON(w, http.StatusOK, a.describeSession(s))
	return nil
}

func (a *API) describeSession(s sessions.Session) sessionReply {
	reply := sessionReply{Success: true, HasUsers: a.SignIn, TakesBearer: a.Sessions.Users.Bearers(), HasProvider: a.Provider != nil,
		SignedIn: s.User.SignedIn(), EndsAt: events.At(s.UserEnds)}
	if reply.SignedIn {
		reply.User = s.Name
	}
	return reply
}

// signIn has a browser remember the user whose key or token the request bears.
func (a *API) signIn(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	bearer, err := users.Bearer(r, maxBody)
	if err != nil || !a.Sessions.Users.Bearers() || !s.User.SignedIn() {
		return errUnauthenticated
	}
	if err := a.signInAs(w, r, s, bearer); err != nil {
		return err
	}
	a.noted(r, s, audit.Entry{Event: audit.SignedIn})
	writeJSON(w, http.StatusOK, a.describeSession(s))
	return nil
}

// signInAs has a browser remember the user of a session, and releases what the browser held before: nobody could extend or release it any more.
func (a *API) signInAs(w http.ResponseWriter, r *http.Request, s sessions.Session, bearer string) error {
	ended, err := a.Sessions.SignIn(w, r, s, bearer, a.Origins)
	if err == nil {
		a.releaseOf(r, ended)
	}
	return err
}

// signOut has a browser forget its user and its session, and releases the session's locks. A program keeps its locks: it has no cookie, and others
// of its user may be the same owner.
func (a *API) signOut(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	a.Sessions.SignOut(w, r)
	if s.Proven {
		a.releaseOf(r, a.Sessions.Owners(r, a.Origins, "", s.User.Name))
	}
	if s.User.SignedIn() {
		a.noted(r, s, audit.Entry{Event: audit.SignedOut})
	}
	writeJSON(w, http.StatusOK, done{Success: true})
	return nil
}

// releaseOf releases all locks of owners, even if the client leaves early.
func (a *API) releaseOf(r *http.Request, owners []string) {
	ctx, cancel := a.detached(r)
	defer cancel()
	if err := a.Locks.ReleaseAll(ctx, owners); err != nil {
		a.Log.Warn("the locks of a session that has ended could not be released; they expire", "error", err)
	}
}

var errSignInAgain = &apiError{http.StatusUnauthorized, "unauthenticated", "This sign-in is over, or began in another browser. Sign in again."}

// signInFailed says why a sign-in at the provider failed.
func signInFailed(err error) error {
	if errors.Is(err, users.ErrUnauthenticated) {
		return errSignInAgain
	}
	return notIdentified(err)
}
