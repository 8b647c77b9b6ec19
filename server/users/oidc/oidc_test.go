package oidc

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/users"
	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
)

func TestProviderTokensNameUsers(t *testing.T) {
	p := oidctest.New(t)
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast", GroupsClaim: "groups"})
	require.NoError(t, err)
	claims := func(change func(map[string]any)) map[string]any {
		c := map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix(), "groups": []string{"editors"}}
		change(c)
		return c
	}
	same := func(map[string]any) {}
	check := func(token string) (users.User, error) {
		u, _, err := v.User(t.Context(), token)
		return u, err
	}
	for range 2 { // the second time it is remembered
		u, err := check(p.Token(claims(same)))
		require.NoError(t, err)
		assert.Equal(t, users.User{Name: "ann", Groups: []string{"editors"}}, u)
	}
	for name, token := range map[string]string{
		"another audience": p.Token(claims(func(c map[string]any) { c["aud"] = "other" })),
		"another issuer":   p.Token(claims(func(c map[string]any) { c["iss"] = "https://example.com" })),
		"expired":          p.Token(claims(func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() })),
		"nobody":           p.Token(claims(func(c map[string]any) { c["sub"] = "" })),
		"not signed":       p.Unsigned(claims(same)),
		"signed by itself": p.SignedWithPublicKey(claims(same)),
		"by another key":   oidctest.New(t).Token(claims(same)),
		"no token":         "abc",
		"changed":          p.Token(claims(same)) + "x",
		"of two lines":     p.Token(claims(func(c map[string]any) { c["sub"] = "user\nann" })),
	} {
		_, err := check(token)
		assert.ErrorIs(t, err, users.ErrUnauthenticated, name)
	}

	// Keys are rotated: the new key is fetched when a token names it.
	p.Rotate()
	_, err = check(p.Token(claims(func(c map[string]any) { c["sub"] = "bob" })))
	require.NoError(t, err)
}

// Some providers let their users state any address of e-mail.
func TestAnAddressThatIsNotVerifiedIsNoUser(t *testing.T) {
	p := oidctest.New(t)
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast", NameClaim: "email"})
	require.NoError(t, err)
	for verified, accepted := range map[any]bool{nil: true, true: true, false: false, "true": true, "false": false} {
		claims := map[string]any{"iss": p.Issuer(), "sub": "1", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix(), "email": "ann@example.com"}
		if verified != nil {
			claims["email_verified"] = verified
		}
		u, _, err := v.User(t.Context(), p.Token(claims))
		if accepted {
			require.NoError(t, err, verified)
			assert.Equal(t, "ann@example.com", u.Name)
		} else {
			assert.ErrorIs(t, err, users.ErrUnauthenticated, verified)
		}
	}
}

func TestSilentProviderIsUnavailable(t *testing.T) {
	p := oidctest.New(t)
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast"})
	require.NoError(t, err)
	token := func(sub string) string {
		return p.Token(map[string]any{"iss": p.Issuer(), "sub": sub, "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()})
	}
	p.Stop()
	_, _, err = v.User(t.Context(), token("ann"))
	assert.ErrorIs(t, err, users.ErrUnavailable)
	p.Start()
	require.Eventually(t, func() bool { _, _, err = v.User(t.Context(), token("ann")); return err == nil }, 30*time.Second, 50*time.Millisecond)
	p.Rotate()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		p.Refuse(status)
		_, _, err = v.User(t.Context(), token("bob"))
		require.ErrorIs(t, err, users.ErrUnavailable, "the new key cannot be had: %d", status)
	}
	p.Stop()
	_, _, err = v.User(t.Context(), token("bob"))
	assert.ErrorIs(t, err, users.ErrUnavailable, "the new key cannot be had")
	_, _, err = v.User(t.Context(), token("bob")+"x")
	assert.Error(t, err)
}

// Tokens with invented keys cause no request to the provider each.
func TestInventedKeysDoNotFloodProvider(t *testing.T) {
	p := oidctest.New(t)
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast"})
	require.NoError(t, err)
	claims := map[string]any{"iss": p.Issuer(), "sub": "eve", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}
	eve, begun := oidctest.New(t), time.Now()
	for range 20 * fetchesAtOnce {
		eve.Rename()
		_, _, err := v.User(t.Context(), eve.Token(claims))
		require.Error(t, err)
	}
	assert.LessOrEqual(t, p.Requests(), fetchesAtOnce+fetches*int(time.Since(begun)/time.Second+1))
}

// While somebody invents keys, the provider rotates its own. A user's token with the new key is not refused: it cannot be checked yet. With 401,
// a program would lose its lock, and a browser would be nobody for a moment, which holds no lock.
func TestInventedKeysDoNotSpoilTokens(t *testing.T) {
	p := oidctest.New(t)
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast"})
	require.NoError(t, err)
	claims := map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}
	eve, refused := oidctest.New(t), 0
	for range 5 * fetchesAtOnce {
		eve.Rename()
		if _, _, err := v.User(t.Context(), eve.Token(claims)); errors.Is(err, users.ErrUnauthenticated) {
			refused++
		}
	}
	assert.Positive(t, refused, "a key that the provider does not have")
	p.Rename() // takes no time in which another fetch is allowed
	ann := p.Token(claims)
	for {
		_, _, err := v.User(t.Context(), ann)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, users.ErrUnavailable)
		time.Sleep(10 * time.Millisecond)
	}
}

// withoutKeys is a network in which the provider's keys are not reachable, unlike its other pages.
type withoutKeys struct{}

func (withoutKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/keys" {
		return nil, errors.New("no answer")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// signIn signs a user in at a provider. change changes what the browser remembers of the sign-in.
func signIn(t *testing.T, p *oidctest.Provider, network http.RoundTripper, change func(*Pending)) error {
	t.Helper()
	v, err := New(Config{Issuer: p.Issuer(), Audience: "holdfast", Client: &http.Client{Transport: network}})
	require.NoError(t, err)
	p.SignIn(map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": time.Now().Add(time.Hour).Unix()}, "")
	page, pending, err := v.Begin("http://localhost/back")
	require.NoError(t, err)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent, err := browser.Get(page)
	require.NoError(t, err)
	require.NoError(t, sent.Body.Close())
	back, err := sent.Location()
	require.NoError(t, err)
	change(&pending)
	_, err = v.Finish(t.Context(), pending, back.Query().Get("state"), back.Query().Get("code"))
	return err
}

func TestASignInNeedsItsOwnToken(t *testing.T) {
	p := oidctest.New(t)
	require.NoError(t, signIn(t, p, nil, func(*Pending) {}))
	require.ErrorIs(t, signIn(t, p, nil, func(begun *Pending) { begun.Nonce = "another" }), users.ErrUnauthenticated)
}

// A user signs in while the server cannot get the provider's keys. The token cannot be checked yet, which does not mean that it is wrong.
func TestASignInWithoutTheKeysIsUnavailable(t *testing.T) {
	require.ErrorIs(t, signIn(t, oidctest.New(t), withoutKeys{}, func(*Pending) {}), users.ErrUnavailable)
}

func TestIssuerAndAudienceAreSetTogether(t *testing.T) {
	for _, c := range []Config{{Issuer: "https://example.com"}, {Audience: "x"}} {
		_, err := New(c)
		assert.ErrorContains(t, err, "must be set together")
	}
}
