package sessions

import (
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/users/oidc"
)

// Pending is a sign-in at a provider that has begun in a browser.
type Pending struct {
	Flow   oidc.Pending `json:"f"`
	Return string       `json:"p"` // the path where the browser was
	Until  int64        `json:"u"` // in milliseconds since 1970
}

// pendingSec is how long a user may take to sign in.
const pendingSec = 600

// KeepPending has the browser keep a sign-in that has begun. Another one takes its place.
func (s Source) KeepPending(w http.ResponseWriter, r *http.Request, p Pending) error {
	p.Until = time.Now().Add(pendingSec * time.Second).UnixMilli()
	return s.setSealed(w, r, s.sealedName(r, pendingName), p, pendingSec)
}

// TakePending returns the sign-in that has begun in the browser, and has the browser forget it.
func (s Source) TakePending(w http.ResponseWriter, r *http.Request) (p Pending, ok bool) {
	name := s.sealedName(r, pendingName)
	ok = s.sealed(r, name, &p) && time.Now().UnixMilli() < p.Until
	s.setCookie(w, r, name, "", -1)
	return p, ok
}

// Base returns the URL of the server as the browser knows it.
func (s Source) Base(r *http.Request) string {
	if s.secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
