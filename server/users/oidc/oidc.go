// Package oidc checks bearer tokens of an OpenID Connect provider.
package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/holdfast-dev/holdfast/server/users"
)

const (
	// patience is the maximum time of an answer of the provider.
	patience = 5 * time.Second
	// pause is the time without requests to a provider that has not answered.
	pause = time.Second
	// remembered is how long a valid token is not checked again, and maxKnown is the number of tokens that are
	// remembered.
	remembered, maxKnown = time.Minute, 10_000
	// fetches is the maximum number of requests to the provider in a second.
	fetches, fetchesAtOnce = 1, 10
)

// Config names the provider.
type Config struct {
	Issuer, Audience string
	// NameClaim is the claim with the user's name; empty means the subject. GroupsClaim is the claim with the list of
	// the user's groups.
	NameClaim, GroupsClaim string
	// Secret proves to the provider that the server is the client Audience; empty where the provider asks for none.
	Secret string
	// Client makes the requests to the provider; nil means a client with a time limit.
	Client *http.Client
}

// Verifier checks tokens. The library fetches the provider's keys and fetches them again when a token names one that it does not know.
type Verifier struct {
	config Config
	plain  *http.Client // is not paced: each user who signs in costs a request

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the provider has answered once
	endpoint oauth2.Endpoint       // likewise
	failed   time.Time
	known    map[[sha256.Size]byte]checked
}

// checked is a token that was valid.
type checked struct {
	user          users.User
	expiry, until time.Time
}

// New returns a verifier. The provider need not run yet: the verifier contacts it when the first token arrives.
func New(c Config) (*Verifier, error) {
	if c.Issuer == "" || c.Audience == "" {
		return nil, errors.New("--oidc-issuer and --oidc-audience must be set together: the provider of the tokens and their audience")
	}
	if c.Client == nil {
		c.Client = &http.Client{Timeout: patience}
	}
	plain := c.Client
	paced := *c.Client
	paced.Transport = &pacedTransport{paced.Transport, rate.NewLimiter(fetches, fetchesAtOnce)}
	c.Client = &paced
	return &Verifier{config: c, plain: plain, known: map[[sha256.Size]byte]checked{}}, nil
}

// User returns the user of a token and the time at which the token expires. The error is [users.ErrUnauthenticated] for
// a token of another provider, for another audience or after its expiry, and [users.ErrUnavailable] while the
// provider's keys are unavailable.
func (v *Verifier) User(ctx context.Context, token string) (users.User, time.Time, error) {
	name, now := sha256.Sum256([]byte(token)), time.Now()
	v.mu.Lock()
	known, ok := v.known[name]
	v.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.user, known.expiry, nil
	}
	u, expiry, err := v.check(ctx, token)
	if err != nil {
		return users.User{}, time.Time{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) >= maxKnown {
		clear(v.known)
	}
	until := now.Add(remembered)
	if expiry.Before(until) {
		until = expiry
	}
	v.known[name] = checked{u, expiry, until}
	return u, expiry, nil
}

func (v *Verifier) check(ctx context.Context, token string) (users.User, time.Time, error) {
	verified, err := v.verify(ctx, token)
	if err != nil {
		return users.User{}, time.Time{}, err
	}
	u, err := v.user(verified)
	return u, verified.Expiry, err
}

// verify checks a token. Its errors are those of User.
func (v *Verifier) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	verifier, err := v.ready()
	if err != nil {
		return nil, err
	}
	var unavailable error
	verified, err := verifier.Verify(context.WithValue(ctx, fetchFailed{}, &unavailable), token)
	switch {
	case unavailable != nil:
		return nil, fmt.Errorf("%w: %w", users.ErrUnavailable, unavailable)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", users.ErrUnauthenticated, err)
	}
	return verified, nil
}

// ready returns the verifier of the library, once the provider has described itself.
func (v *Verifier) ready() (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verifier != nil {
		return v.verifier, nil
	}
	if time.Since(v.failed) < pause {
		return nil, users.ErrUnavailable
	}
	// The library keeps this context to fetch keys later, so it must not be the context of a request.
	ctx := oidc.ClientContext(context.Background(), v.config.Client)
	provider, err := oidc.NewProvider(ctx, v.config.Issuer)
	var described struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err == nil {
		err = provider.Claims(&described)
	}
	if err != nil {
		v.failed = time.Now()
		return nil, fmt.Errorf("%w: %w", users.ErrUnavailable, err)
	}
	v.endpoint = provider.Endpoint()
	algorithms := slices.DeleteFunc(described.Algorithms, func(name string) bool { return !slices.Contains(asymmetric, name) })
	v.verifier = oidc.NewVerifier(v.config.Issuer, keys{oidc.NewRemoteKeySet(ctx, described.Keys)},
		&oidc.Config{ClientID: v.config.Audience, SupportedSigningAlgs: algorithms})
	return v.verifier, nil
}

// asymmetric are the signatures that only the provider can make.
var asymmetric = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// keys are the provider's keys. They report through the context when they are unavailable: the library's own error does
// not say so.
type keys struct{ oidc.KeySet }

type fetchFailed struct{}

// VerifySignature checks a signature.
func (k keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	var failed *url.Error // of the client
	if report, ok := ctx.Value(fetchFailed{}).(*error); ok && errors.As(err, &failed) {
		*report = err
	}
	return payload, err
}

// pacedTransport bounds the requests to the provider: each token that names an unknown key asks for the keys again.
type pacedTransport struct {
	http.RoundTripper
	limit *rate.Limiter
}

var errPaced = errors.New("the provider was asked too often just now")

// RoundTrip sends a request, or fails at once. A response without an answer is an error, as none at all: the library
// would take it for a wrong token.
func (p *pacedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !p.limit.Allow() {
		return nil, errPaced
	}
	transport := p.RoundTripper
	if transport == nil {
		transport = http.DefaultTransport
	}
	response, err := transport.RoundTrip(r)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the provider responded %s", response.Status)
	}
	return response, err
}

func (v *Verifier) user(token *oidc.IDToken) (users.User, error) {
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return users.User{}, fmt.Errorf("%w: %w", users.ErrUnauthenticated, err)
	}
	u := users.User{Name: token.Subject}
	if v.config.NameClaim != "" {
		u.Name, _ = claims[v.config.NameClaim].(string)
	}
	if u.Name == "" || strings.ContainsFunc(u.Name, unicode.IsControl) {
		return users.User{}, fmt.Errorf("%w: the token names no user, or with control characters", users.ErrUnauthenticated)
	}
	// Some providers let their users state any address, so it names a user only where it is not said to be unverified.
	if verified, stated := claims["email_verified"]; v.config.NameClaim == "email" && stated && fmt.Sprint(verified) != "true" {
		return users.User{}, fmt.Errorf("%w: the provider has not verified the user's e-mail address", users.ErrUnauthenticated)
	}
	groups, _ := claims[v.config.GroupsClaim].([]any)
	for _, g := range groups {
		if name, ok := g.(string); ok {
			u.Groups = append(u.Groups, name)
		}
	}
	return u, nil
}
