package httpapi

import (
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

const (
	loginPath    = "/api/session/login"
	callbackPath = "/api/session/callback"
)

// OnlyGet refuses other methods than GET. Paths whose GET changes the browser's cookies refuse HEAD, too: link previews and
// proxies send it, and the pattern of a GET matches it.
func OnlyGet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Allow", http.MethodGet)
	writeError(w, errMethod)
}

var errNoProvider = &apiError{http.StatusNotFound, "not_found", "This server has no provider where users sign in; see --oidc-issuer."}

// beginSignIn redirects the browser to the provider's page for signing in.
func (a *API) beginSignIn(w http.ResponseWriter, r *http.Request, _ sessions.Session) error {
	if a.Provider == nil {
		return errNoProvider
	}
	page, pending, err := a.Provider.Begin(a.Sessions.Base(r) + callbackPath)
	if err != nil {
		return notIdentified(err)
	}
	if err := a.Sessions.KeepPending(w, r, sessions.Pending{Flow: pending, Return: ownPath(r.URL.Query().Get("return"))}); err != nil {
		return err
	}
	redirect(w, page)
	return nil
}

// endSignIn signs the user in when the browser comes back from the provider, and redirects the browser to its former page.
func (a *API) endSignIn(w http.ResponseWriter, r *http.Request, s sessions.Session) error {
	if a.Provider == nil {
		return errNoProvider
	}
	end, err := a.takeTurn(r, &a.signIns, signInsAtOnce)
	if err != nil {
		return err
	}
	defer end()
	pending, ok := a.Sessions.TakePending(w, r)
	query := r.URL.Query()
	if !ok || query.Get("code") == "" {
		return errSignInAgain
	}
	token, err := a.Provider.Finish(r.Context(), pending.Flow, query.Get("state"), query.Get("code"))
	if err != nil {
		return signInFailed(err)
	}
	id, err := a.Sessions.Users.OfBearer(r.Context(), token)
	if err != nil {
		return signInFailed(err)
	}
	now := sessions.Session{User: id.User, Name: sessions.Clean(id.Name), UserEnds: id.Ends, HolderID: s.HolderID, New: s.New}
	if err := a.signInAs(w, r, now, token); err != nil {
		return err
	}
	a.noted(r, now, audit.Entry{Event: audit.SignedIn})
	redirect(w, pending.Return)
	return nil
}

// ownPath returns the text if it is a path of this server, otherwise "/". So a link to sign in never leads to another site.
func ownPath(text string) string {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == '\\' || c > '~' }) {
		return "/"
	}
	return text
}

func redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
