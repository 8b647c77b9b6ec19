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

	mu  sync.Mutex
	key *rsa.PrivateKey
	id  int
}

// keyNumber names keys, so that no two providers of a test have keys of one name.
var keyNumber atomic.Int64

// New starts a provider.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{t: t}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer any
	switch r.URL.Path {
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
