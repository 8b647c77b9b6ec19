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
	"unicode"
	"unicode/utf8"
)

const (
	// CookieName is the cookie that holds a browser's secret.
	CookieName = "holdfast_session"

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
}

// Source makes sessions of requests.
type Source struct {
	// UserHeader is a header that a reverse proxy sets to the user's name, and that no client can set past it. Empty is
	// none.
	UserHeader string
	// SecureCookie keeps the cookie to HTTPS, for a server behind a proxy that ends it.
	SecureCookie bool
}

// Of returns the session of a request. A browser that has none yet gets its cookie with the answer.
func (s Source) Of(w http.ResponseWriter, r *http.Request) (Session, error) {
	session := Session{TrustedName: s.trustedName(r)}
	secret, err := bearer(r)
	if err != nil {
		return Session{}, err
	}
	if secret == "" {
		secret = cookie(r)
	}
	if secret == "" {
		secret, session.New = newSecret(), true
		http.SetCookie(w, &http.Cookie{
			Name: CookieName, Value: secret, Path: "/", MaxAge: yearInSec,
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.SecureCookie || r.TLS != nil,
		})
	}
	session.HolderID = HolderID(secret)
	return session, nil
}

func (s Source) trustedName(r *http.Request) string {
	if s.UserHeader == "" {
		return ""
	}
	name := []rune(strings.TrimSpace(r.Header.Get(s.UserHeader)))
	return string(name[:min(len(name), maxName)])
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

// cookie returns the secret of a browser. One that this server cannot have made counts as none, so that nobody can
// make a browser's owner of a secret that is easy to guess.
func cookie(r *http.Request) string {
	c, err := r.Cookie(CookieName)
	if err != nil {
		return ""
	}
	if raw, err := base64.RawURLEncoding.DecodeString(c.Value); err != nil || len(raw) != secretBytes {
		return ""
	}
	return c.Value
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

// CheckName returns ErrName for what cannot be a holder's name.
func CheckName(name string) error {
	if !utf8.ValidString(name) || strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxName {
		return ErrName
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return ErrName
		}
	}
	return nil
}
