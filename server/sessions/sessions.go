// Package sessions says who is asking. A browser has a random secret in a cookie, a program brings one of its own. The
// secret is the owner; what others get to see is derived from it and does not lead back.
package sessions

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

const (
	// CookieName is the cookie that holds a browser's secret; over TLS it is SecureCookieName, which no other host of the
	// domain can set and no plain connection.
	CookieName       = "holdfast_session"
	SecureCookieName = "__Host-" + CookieName

	maxSecret = 512 // bytes
	maxName   = 64  // characters
	yearInSec = 365 * 24 * 60 * 60
)

var (
	// ErrSecret means that the secret of a program cannot be used.
	ErrSecret = errors.New("the Authorization header must be Bearer with a secret of 1 to 512 characters")
	// ErrName means that a name is empty, too long or not printable.
	ErrName = errors.New("a name has 1 to 64 printable characters")
)

// Session is one who asks.
type Session struct {
	// HolderID stands for the owner before others.
	HolderID string
	// TrustedName is what a reverse proxy calls the owner; empty without one.
	TrustedName string
	// New tells that the request bore no secret and was given one.
	New bool
	// Proven tells that the secret is one that this service has made. Anybody can invent another.
	Proven bool
}

// Source makes sessions of requests.
type Source struct {
	// UserHeader is a header that a reverse proxy sets to the user's name, and that no client can set past it. Empty is
	// none.
	UserHeader string
	// SecureCookie keeps the cookie to HTTPS, for a server behind a proxy that ends it.
	SecureCookie bool
	// Key signs the secrets in cookies, so that a browser cannot be given one that somebody made up. All servers of a
	// store have the same.
	Key []byte
}

// Of returns the session of a request. A browser that has none yet gets its cookie with the answer.
func (s Source) Of(w http.ResponseWriter, r *http.Request) (Session, error) {
	session := Session{TrustedName: s.trustedName(r)}
	secret, err := bearer(r)
	if err != nil {
		return Session{}, err
	}
	if secret == "" {
		secret = s.cookie(r)
		session.Proven = secret != ""
	}
	if secret == "" {
		secret, session.New = newSecret(), true
		http.SetCookie(w, &http.Cookie{
			Name: s.cookieName(r), Value: secret + "." + s.sign(secret), Path: "/", MaxAge: yearInSec,
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.secure(r),
		})
	}
	session.HolderID = HolderID(secret)
	return session, nil
}

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

func (s Source) trustedName(r *http.Request) string {
	if s.UserHeader == "" {
		return ""
	}
	return Clean(r.Header.Get(s.UserHeader))
}

// bearer returns the secret of a program, or "" where there is no Authorization header.
func bearer(r *http.Request) (string, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", nil
	}
	scheme, secret, ok := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > maxSecret {
		return "", ErrSecret
	}
	return secret, nil
}

// cookie returns the secret of a browser. One that this service has not made counts as none.
func (s Source) cookie(r *http.Request) string {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil {
		return ""
	}
	secret, signature, _ := strings.Cut(c.Value, ".")
	if !hmac.Equal([]byte(signature), []byte(s.sign(secret))) {
		return ""
	}
	return secret
}

const secretBytes = 32

func newSecret() string {
	random := make([]byte, secretBytes)
	rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)
}

// HolderID returns what stands for a secret before others: 128 bits of its HMAC-SHA-256. All servers derive the same,
// and a secret that cannot be guessed cannot be found from it.
func HolderID(secret string) string {
	mac := hmac.New(sha256.New, []byte("holdfast holder id 1"))
	mac.Write([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}
