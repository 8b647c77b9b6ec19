// Package oidctest is an OpenID Connect provider for tests. It signs with the standard library alone.
package oidctest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Provider is a running provider with one key.
type Provider struct {
	t        testing.TB
	server   *httptest.Server
	requests atomic.Int64
	stopped  atomic.Bool
	status   atomic.Int64 // of each response; 0 is as it should be
	delay    atomic.Pointer[func()]

	mu  sync.Mutex
	key *rsa.PrivateKey
	id  int
	// The user of the provider's page, with the client's secret and the sign-ins that have a code.
	claims map[string]any
	secret string
	codes  map[string]url.Values
}

// SignIn makes the provider's page sign in every browser as the user of these claims, for a client with that secret. With nil, it refuses.
func (p *Provider) SignIn(claims map[string]any, secret string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.secret = claims, secret
}

// authorize is the page where a user signs in. It sends the browser back at once.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back := url.Values{"state": query["state"]}
	if p.claims == nil {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		p.codes[code] = query
		back.Set("code", code)
	}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// exchange gives a token for a code, once, to the client that began (RFC 6749, 4.1.3, and RFC 7636).
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	begun, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	w.Header().Set("Content-Type", "application/json")
	if !ok || id != begun.Get("client_id") || secret != p.secret || begun.Get("redirect_uri") != r.PostFormValue("redirect_uri") ||
		begun.Get("code_challenge_method") != "S256" || begun.Get("code_challenge") != encode(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"nonce": begun.Get("nonce")}
	for name, value := range p.claims {
		claims[name] = value
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.sign(claims)})
}

// keyNumber names keys, so that no two providers of a test have keys of one name.
var keyNumber atomic.Int64

// New starts a provider.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t, codes: map[string]url.Values{}}
	p.Rotate()
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// Issuer is the provider's address.
func (p *Provider) Issuer() string { return p.server.URL }

// Requests is the number of requests to the provider.
func (p *Provider) Requests() int { return int(p.requests.Load()) }

// Stop makes the provider abort requests, and Start makes it answer again.
func (p *Provider) Stop()  { p.stopped.Store(true) }
func (p *Provider) Start() { p.stopped.Store(false) }

// Refuse makes the provider respond with a status and no answer; 0 makes it answer again.
func (p *Provider) Refuse(status int) { p.status.Store(int64(status)) }

// Delay makes each exchange of a code wait until f returns.
func (p *Provider) Delay(f func()) { p.delay.Store(&f) }

// Rotate replaces the key.
func (p *Provider) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(p.t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.id = key, int(keyNumber.Add(1))
}

// Rename gives the key another name.
func (p *Provider) Rename() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = int(keyNumber.Add(1))
}

// ServeHTTP describes the provider and gives its keys.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if p.stopped.Load() {
		panic(http.ErrAbortHandler)
	}
	if status := p.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return
	}
	if f := p.delay.Load(); f != nil && r.URL.Path == "/token" {
		(*f)()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/auth":
		p.authorize(w, r)
		return
	case "/token":
		p.exchange(w, r)
		return
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer": p.Issuer(), "jwks_uri": p.Issuer() + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
			"authorization_endpoint": p.Issuer() + "/auth", "token_endpoint": p.Issuer() + "/token",
		}
	case "/keys":
		answer = map[string]any{"keys": []map[string]any{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": strconv.Itoa(p.id),
			"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
		}}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func (p *Provider) body(algorithm string, claims map[string]any) string {
	header, err := json.Marshal(map[string]any{"alg": algorithm, "kid": strconv.Itoa(p.id), "typ": "JWT"})
	require.NoError(p.t, err)
	text, err := json.Marshal(claims)
	require.NoError(p.t, err)
	return encode(header) + "." + encode(text)
}

// Token signs claims.
func (p *Provider) Token(claims map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(claims)
}

func (p *Provider) sign(claims map[string]any) string {
	body := p.body("RS256", claims)
	sum := sha256.Sum256([]byte(body))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	require.NoError(p.t, err)
	return body + "." + encode(signature)
}

// Unsigned returns a token that claims to need no signature.
func (p *Provider) Unsigned(claims map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.body("none", claims) + "."
}

// SignedWithPublicKey returns a token that takes the public key for a shared secret, which anybody could make.
func (p *Provider) SignedWithPublicKey(claims map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	body := p.body("HS256", claims)
	public, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	require.NoError(p.t, err)
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(body))
	return body + "." + encode(mac.Sum(nil))
}
