package server_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/holdfast-dev/holdfast/internal/loopback"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// realProvider is the example of zitadel's library for providers, in a process of its own. Each start makes a new key.
type realProvider struct {
	t        *testing.T
	port     string
	redirect string
	process  *exec.Cmd
}

func (p *realProvider) issuer() string { return "http://localhost:" + p.port + "/" }

func (p *realProvider) start() {
	p.t.Helper()
	p.process = exec.Command(os.Getenv("OIDC_PROVIDER"))
	p.process.Env = append(os.Environ(), "PORT="+p.port, "REDIRECT_URI="+p.redirect)
	require.NoError(p.t, p.process.Start())
	require.Eventually(p.t, func() bool {
		response, err := http.Get(p.issuer() + ".well-known/openid-configuration")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
}

func (p *realProvider) stop() {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
}

// signIn follows a sign-in to the provider's form and sends it. It returns where the browser ends up,
// where that page would send it, and its text.
func (p *realProvider) signIn(browser *http.Client, address, password string) (at *url.URL, next, text string) {
	p.t.Helper()
	_, _, form := browse(p.t, browser, address)
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form)
	require.Len(p.t, id, 2, form)
	response, err := browser.PostForm(p.issuer()+"login/username",
		url.Values{"id": {id[1]}, "username": {"test-user@localhost"}, "password": {password}})
	require.NoError(p.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.Request.URL, response.Header.Get("Location"), string(body)
}

// Users sign in at a provider that others wrote, with its form. Tokens that it renews are accepted, also under a new key;
// tokens for another client, of another provider or of the time before a key was withdrawn are not.
func TestRealProvider(t *testing.T) {
	if os.Getenv("OIDC_PROVIDER") == "" {
		t.Skip("make test-oidc builds the provider and runs it")
	}
	p := &realProvider{t: t, port: freePort(t)}
	secret := writeFile(t, "secret")
	with := func(issuer, audience string) *instance {
		c := servertest.Unlimited(t)
		c.OIDCIssuer, c.OIDCAudience, c.OIDCSecret = issuer, audience, secret
		return startWith(t, c)
	}
	s := with(p.issuer(), "web") // before its provider
	own := "http://localhost/code"
	p.redirect = s.URL + "/api/session/callback," + own
	p.start()
	t.Cleanup(func() { p.stop() })
	who := func(browser *http.Client) string {
		_, _, text := browse(t, browser, s.URL+"/api/session")
		return text
	}

	browser := webBrowser(t)
	_, _, text := p.signIn(browser, s.URL+"/api/session/login?return=/api/session", "wrong")
	assert.Contains(t, text, "name=\"password\"", "the provider's form again")
	assert.Contains(t, who(browser), `"signed_in":false`)
	at, _, text := p.signIn(browser, s.URL+"/api/session/login?return=/api/session", "verysecure")
	assert.Equal(t, s.URL+"/api/session", at.String(), text)
	assert.Contains(t, who(browser), `"user":"id1"`)

	token := p.token(own, "web")
	bearer := func(s *instance, token string) int { return s.as(t, token).do("POST", lockOf("r"), nil).status }
	assert.Equal(t, http.StatusOK, bearer(s, token.Extra("id_token").(string)))
	renewed, err := p.client(own, "web").TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	require.NoError(t, err)
	assert.NotEqual(t, token.Extra("id_token"), renewed.Extra("id_token"))
	assert.Equal(t, http.StatusOK, bearer(s, renewed.Extra("id_token").(string)))

	other := p.token(own, "api").Extra("id_token").(string)
	assert.Equal(t, http.StatusUnauthorized, bearer(s, other), "another audience")
	assert.Equal(t, http.StatusUnauthorized, bearer(s, other+"x"))
	elsewhere := &realProvider{t: t, port: freePort(t), redirect: own}
	elsewhere.start()
	t.Cleanup(elsewhere.stop)
	assert.Equal(t, http.StatusUnauthorized, bearer(s, elsewhere.token(own, "web").Extra("id_token").(string)), "another issuer")

	// A new key: its tokens count at once, and a server that has not seen the former ones refuses them.
	p.stop()
	p.start()
	assert.Equal(t, http.StatusOK, bearer(s, p.token(own, "web").Extra("id_token").(string)))
	assert.Equal(t, http.StatusUnauthorized, bearer(with(p.issuer(), "web"), renewed.Extra("id_token").(string)))
}

func (p *realProvider) client(redirect, id string) *oauth2.Config {
	provider, err := oidc.NewProvider(p.t.Context(), p.issuer())
	require.NoError(p.t, err)
	return &oauth2.Config{ClientID: id, ClientSecret: "secret", Endpoint: provider.Endpoint(), RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}}
}

// token signs a program in and returns its tokens.
func (p *realProvider) token(redirect, client string) *oauth2.Token {
	p.t.Helper()
	browser := webBrowser(p.t)
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	c := p.client(redirect, client)
	_, next, _ := p.signIn(browser, c.AuthCodeURL("state"), "verysecure")
	at, err := url.Parse(next)
	require.NoError(p.t, err)
	token, err := c.Exchange(context.Background(), at.Query().Get("code"))
	require.NoError(p.t, err)
	return token
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := loopback.FreePort()
	require.NoError(t, err)
	return port
}
