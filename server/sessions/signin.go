package sessions

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/users"
)

// A user of a browser signs in by showing a key or token once. An encrypted cookie then contains the key or token. The
// server checks it again with each request, so the sign-in ends when the key is removed or the token expires. No page
// and no other server can read it.

const (
	signInName  = "holdfast_user"
	pendingName = "holdfast_sign_in"
	// maxCookie is the maximum size of a cookie's name and value in browsers.
	maxCookie = 4096
	monthSec  = 30 * 24 * 60 * 60
)

// ErrTooLong means that a token does not fit into a cookie.
var ErrTooLong = errors.New("the token is too long for a cookie: have the provider put less into it, about 2,900 bytes at most")

// signIn is the content of the cookie.
type signIn struct {
	User   string `json:"u"`
	Bearer string `json:"b"`
}

// SignIn sets a cookie for the user whose bearer the request has. If another user or nobody was signed in before,
// the browser also gets a new session, so a session that an attacker planted is of no use. SignIn returns the ids of the owners that
// the browser no longer is, see [Source.Owners].
func (s Source) SignIn(w http.ResponseWriter, r *http.Request, session Session, bearer string, origins []string) (ended []string, err error) {
	age := monthSec
	if !session.UserEnds.IsZero() {
		age = max(1, min(age, int(time.Until(session.UserEnds).Seconds())))
	}
	name := s.sealedName(r, signInName)
	if err := s.setSealed(w, r, name, signIn{session.User.Name, bearer}, age); err != nil {
		return nil, err
	}
	before, _ := s.signedIn(r)
	if before.User == session.User.Name {
		return s.Owners(r, origins, ""), nil
	}
	if !session.New {
		s.forget(w, r)
		s.newCookie(w, r)
	}
	// The user may have been an owner too: with a bearer in each request, or with a cookie that has expired since.
	return s.Owners(r, origins, "", before.User, session.User.Name), nil
}

// Owners returns the ids that a browser has with its present cookies as one of some users, of which "" is nobody. Each page has an id
// of its own for its origin: the server's own one, that of the request, or one of origins.
func (s Source) Owners(r *http.Request, origins []string, names ...string) (ids []string) {
	for _, from := range append([]string{ownOrigin(r), origin(r)}, origins...) {
		for _, m := range s.cookies(r) {
			for _, name := range names {
				if id := m.holderID(from, users.User{Name: name}); !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// SignOut removes the cookies of the user and of the session from the browser.
func (s Source) SignOut(w http.ResponseWriter, r *http.Request) {
	s.setCookie(w, r, s.sealedName(r, signInName), "", -1)
	s.forget(w, r)
}

// forget removes the cookies of the session from the browser.
func (s Source) forget(w http.ResponseWriter, r *http.Request) {
	for _, c := range s.sessionCookies(r) {
		s.setCookie(w, r, c.Name, "", -1)
	}
}

// signedIn returns the content of the cookie of the sign-in. It does not check the key or token.
func (s Source) signedIn(r *http.Request) (m signIn, ok bool) {
	ok = s.sealed(r, s.sealedName(r, signInName), &m)
	return m, ok
}

// remembered returns the user of the sign-in cookie, or nobody if there is no cookie or its key or token is no longer valid.
func (s Source) remembered(ctx context.Context, r *http.Request) (users.Identity, error) {
	m, ok := s.signedIn(r)
	if !ok || !s.Users.Bearers() {
		return users.Identity{}, nil
	}
	id, err := s.Users.OfBearer(ctx, m.Bearer)
	if errors.Is(err, users.ErrUnauthenticated) {
		return users.Identity{}, nil
	}
	id.Bearer = false
	return id, err
}

// sealedName names a cookie. Servers on other ports of the host, of another store, have another name.
func (s Source) sealedName(r *http.Request, kind string) string {
	name := kind + "_" + base64.RawURLEncoding.EncodeToString(s.derived("name"))[:8]
	if s.secure(r) {
		return "__Host-" + name
	}
	return name
}

// setSealed sets a cookie that no page and no other server can read or make.
func (s Source) setSealed(w http.ResponseWriter, r *http.Request, name string, content any, age int) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	value := base64.RawURLEncoding.EncodeToString(s.sealer().Seal(nil, nil, text, []byte(name)))
	if len(name)+len(value) > maxCookie {
		return ErrTooLong
	}
	s.setCookie(w, r, name, value, age)
	return nil
}

// sealed reads a cookie that setSealed has set. It reports false if there is none, or if a server of another store has set it.
func (s Source) sealed(r *http.Request, name string, content any) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	text, err := s.sealer().Open(nil, nil, sealed, []byte(name))
	return err == nil && json.Unmarshal(text, content) == nil
}

// sealedText separates the texts of Seal from cookies, which have names.
const sealedText = "text"

// Seal encrypts a text, so that only servers of this store can read it.
func (s Source) Seal(text string) string {
	return base64.RawURLEncoding.EncodeToString(s.sealer().Seal(nil, nil, []byte(text), []byte(sealedText)))
}

// Unseal returns a text that Seal has encrypted.
func (s Source) Unseal(sealed string) (string, bool) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return "", false
	}
	text, err := s.sealer().Open(nil, nil, data, []byte(sealedText))
	return string(text), err == nil
}

func (s Source) sealer() cipher.AEAD {
	block, err := aes.NewCipher(s.derived("key"))
	if err == nil {
		var sealer cipher.AEAD
		if sealer, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return sealer
		}
	}
	panic(err) // the key has the right length
}

func (s Source) derived(what string) []byte {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte("holdfast sign-in " + what + " 1"))
	return mac.Sum(nil)
}

func (s Source) setCookie(w http.ResponseWriter, r *http.Request, name, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.secure(r)})
}

// sessionCookies returns the cookies of a request that may have secrets.
func (s Source) sessionCookies(r *http.Request) (ours []*http.Cookie) {
	name := s.cookieName(r)
	for _, c := range r.Cookies() {
		if c.Name == name || strings.HasPrefix(c.Name, name+"_") {
			ours = append(ours, c)
		}
	}
	return ours
}
