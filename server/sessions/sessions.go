// Package sessions finds the owner of a request.
//
// A browser has a random secret in a cookie; a program sends a secret of its own choice. The secret is the owner. Others
// see an id that is derived from the secret, and cannot find the secret from the id.
//
// # Origins
//
// Browsers send one cookie from all ports of a host and from all origins of a site, but the locks by which tabs exclude
// each other belong to one origin. So the owner behind a cookie is the secret together with the origin of the page: two
// origins of one browser are two owners, and neither can change a lock of the other.
//
// # Users
//
// A session belongs to the user who has signed in, and so does what it holds: the same cookie or secret without the user, or with another
// one, is another owner. A program that signs in with a key or token is the same owner wherever it runs, unless it names its session.
//
// # First visits
//
// Requests that are sent before a browser has its cookie each get a new secret. Every cookie has a name of its own, so a
// late answer adds a cookie and never replaces one. The oldest secret is then the owner; what was granted under the others
// belongs to the same browser, see [Session.Owns].
package sessions

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/users"
)

const (
	// CookieName begins the names of the cookies that hold a browser's secrets. Over TLS, SecureCookieName does: no other host
	// of the domain and no plain connection can set such a cookie.
	CookieName       = "holdfast_session"
	SecureCookieName = "__Host-" + CookieName

	maxSecret  = 512 // bytes
	maxCookies = 256 // that are read; browsers keep up to 180 for a host, including those of servers on other ports
	maxName    = 64  // characters
	yearInSec  = 365 * 24 * 60 * 60
)

var (
	// ErrSecret means that the secret of a program cannot be used.
	ErrSecret = errors.New("the Authorization header must be Bearer with a secret of 1 to 512 characters")
	// ErrSessionHeader means that the header that names a program's session cannot be used.
	ErrSessionHeader = errors.New("the header Holdfast-Session has 1 to 128 printable ASCII characters")
	// ErrName means that a name is empty, too long or not printable.
	ErrName = errors.New("a name has 1 to 64 printable characters")
)

// Session is the owner of a request.
type Session struct {
	// HolderID identifies the owner to others.
	HolderID string
	// Former are further ids of the same owner: a browser has them when its first requests ran in parallel.
	Former []string
	// User is the signed-in user, and Name is the name that others see. Both are empty if nobody has signed in. The sign-in ends at
	// UserEnds, if it is not zero, and when Still reports false, if it is not nil.
	User     users.User
	Name     string
	UserEnds time.Time
	Still    func() bool
	// New reports that the request bore no secret and got a new one.
	New bool
	// Proven reports that this service made the secret. A client can invent any other secret.
	Proven bool
}

// Owns reports whether a holder is this owner.
func (s Session) Owns(holderID string) bool {
	return holderID == s.HolderID || slices.Contains(s.Former, holderID)
}

// SignInEnded reports whether the user's sign-in has ended since the request.
func (s Session) SignInEnded(now time.Time) bool {
	return !s.UserEnds.IsZero() && !now.Before(s.UserEnds) || s.Still != nil && !s.Still()
}

// Source makes sessions of requests.
type Source struct {
	// Users says which user a request is of.
	Users users.Source
	// SecureCookie makes browsers send the cookie over HTTPS only. It is for a server behind a proxy that ends HTTPS.
	SecureCookie bool
	// Key signs the secrets in cookies, so that no cookie with an invented secret is accepted. All servers of a
	// store have the same key.
	Key []byte
}

// Of returns the session of a request. A browser without a session gets its cookie with the answer. Of fails with the errors of this package
// and of [users.Source.Of].
func (s Source) Of(w http.ResponseWriter, r *http.Request) (Session, error) {
	id, err := s.Users.Of(r)
	if err == nil && !id.SignedIn() && r.Header.Get("Authorization") == "" {
		id, err = s.remembered(r.Context(), r)
	}
	if err != nil {
		return Session{}, err
	}
	session := Session{User: id.User, Name: Clean(id.Name), UserEnds: id.Ends, Still: id.Still}
	if id.SignedIn() && session.Name == "" {
		return session, users.ErrUnauthenticated // the user has no name that others can read
	}
	switch made := s.cookies(r); {
	case !s.Users.Bearers() && r.Header.Get("Authorization") != "":
		secret, err := users.Bearer(r, maxSecret)
		if err != nil {
			return Session{}, ErrSecret
		}
		named, err := programSession(r)
		if err != nil {
			return Session{}, err
		}
		session.HolderID = HolderID(secret + named + belongsTo(id.User))
	case id.Bearer && len(made) == 0 && !ofPage(r):
		named, err := programSession(r)
		if err != nil {
			return Session{}, err
		}
		session.HolderID = HolderID(named + belongsTo(id.User))
	default:
		session.Proven = len(made) > 0
		if !session.Proven {
			made, session.New = []secretMade{s.newCookie(w, r)}, true
		}
		from := origin(r)
		for _, m := range made {
			session.Former = append(session.Former, m.holderID(from, id.User))
		}
		session.HolderID, session.Former = session.Former[0], session.Former[1:]
	}
	return session, nil
}

// ofPage reports whether a page sent the request. Old browsers, and all browsers where the server has no HTTPS, send no Sec-Fetch-Site, but they
// send Origin with each request for a lock.
func ofPage(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != ""
}

// belongsTo is the part of an owner that is its user: one secret in the hands of two users is two owners.
func belongsTo(u users.User) string {
	if !u.SignedIn() {
		return ""
	}
	return "\nuser\n" + u.Name
}

// SessionHeader lets programs of one user or with one secret exclude each other: each of its values is an owner of its own.
const SessionHeader = "Holdfast-Session"

// programSession returns the name of a program's session; programs that give none are one owner, their user.
func programSession(r *http.Request) (string, error) {
	names := r.Header.Values(SessionHeader)
	if len(names) == 0 {
		return "", nil
	}
	name := names[0]
	if len(names) > 1 || name == "" || len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", ErrSessionHeader
	}
	return "\n" + name, nil
}

// newCookie makes a secret and sets the cookie that keeps it.
func (s Source) newCookie(w http.ResponseWriter, r *http.Request) secretMade {
	m := secretMade{time.Now().UnixMilli(), newSecret()}
	s.setCookie(w, r, s.cookieName(r)+"_"+newSecret()[:8], s.value(m), yearInSec)
	return m
}

// origin returns the origin of the page that sent the request. It is the server's own origin unless the request names another one, as behind a
// proxy that sets Host. Browsers leave Origin out of GET within one origin, but send Referer.
func origin(r *http.Request) string {
	text := r.Header.Get("Origin")
	if text == "" || text == "null" && r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		text = ""
		if page, err := url.Parse(r.Referer()); err == nil && page.Host != "" {
			text = page.Scheme + "://" + page.Host
		}
	}
	if from, err := url.Parse(text); text == "" || err == nil && strings.EqualFold(from.Host, r.Host) {
		return ownOrigin(r)
	}
	return text
}

// ownOrigin is the part of an owner that is the server's own origin.
func ownOrigin(r *http.Request) string { return strings.ToLower(r.Host) }

func (s Source) secure(r *http.Request) bool { return s.SecureCookie || r.TLS != nil }

func (s Source) cookieName(r *http.Request) string {
	if s.secure(r) {
		return SecureCookieName
	}
	return CookieName
}

func (s Source) sign(secret string) string {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// secretMade is a secret that this service has made, and when, in milliseconds since 1970.
type secretMade struct {
	at     int64
	secret string
}

// holderID returns the id of an owner: the browser with this secret, in pages of an origin, with a user.
func (m secretMade) holderID(origin string, u users.User) string {
	return HolderID(m.secret + "\n" + origin + belongsTo(u))
}

// value returns the value of a cookie: the secret, its time, and the signature of both.
func (s Source) value(m secretMade) string {
	text := m.secret + "." + strconv.FormatInt(m.at, 36)
	return text + "." + s.sign(text)
}

// cookies returns the secrets of a browser, the oldest first. A cookie that this service has not made counts as none: servers
// on other ports of the host set cookies of their own.
func (s Source) cookies(r *http.Request) (made []secretMade) {
	ours := s.sessionCookies(r)
	for _, c := range ours[:min(len(ours), maxCookies)] {
		if m, ok := s.read(c.Value); ok && !slices.Contains(made, m) {
			made = append(made, m)
		}
	}
	slices.SortFunc(made, func(a, b secretMade) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.secret, b.secret))
	})
	return made
}

// read reads the value of a cookie. Cookies of earlier versions have no time and count as the oldest.
func (s Source) read(value string) (m secretMade, ok bool) {
	i := strings.LastIndexByte(value, '.')
	if i < 0 || !hmac.Equal([]byte(value[i+1:]), []byte(s.sign(value[:i]))) {
		return m, false
	}
	secret, at, _ := strings.Cut(value[:i], ".")
	m.secret = secret
	m.at, _ = strconv.ParseInt(at, 36, 64)
	return m, true
}

const secretBytes = 32

func newSecret() string {
	random := make([]byte, secretBytes)
	rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// HolderID returns the id by which others know the owner of a secret: 128 bits of the secret's HMAC-SHA-256. All servers derive the
// same id. Nobody can find a random secret from its id.
func HolderID(secret string) string {
	mac := hmac.New(sha256.New, []byte("holdfast holder id 1"))
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}
