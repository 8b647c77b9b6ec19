package users

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

var (
	// ErrHeader means that a request names a user, but does not come from a trusted proxy.
	ErrHeader = errors.New("the header with the user's name may appear once, in a request from a proxy that --trusted-proxy lists")
	// ErrUnauthenticated means that a request has a key or token that belongs to no user.
	ErrUnauthenticated = errors.New("the Authorization header must be Bearer with a valid API key or token")
	// ErrUnavailable means that a token cannot be checked at the moment.
	ErrUnavailable = errors.New("the issuer of tokens does not answer")
)

// maxToken bounds the size of a header value: 8 KB, as in most servers.
const maxToken = 8 << 10

// Source finds the user of a request. The zero value knows no users.
type Source struct {
	// Header is a header that a reverse proxy sets to the user's name. GroupsHeader contains the user's groups,
	// separated by commas. Empty means none. Trusted reports whether a request comes from such a proxy. In any other
	// request the headers are an error.
	Header, GroupsHeader string
	Trusted              func(*http.Request) bool
	// Keys returns the present API keys; nil is none.
	Keys func() Keys
	// Tokens checks bearer tokens; nil is none.
	Tokens Tokens
}

// Tokens checks bearer tokens.
type Tokens interface {
	// User returns the user of a token and until when it may be used. It fails with [ErrUnauthenticated] or [ErrUnavailable].
	User(ctx context.Context, token string) (User, time.Time, error)
}

// Enabled reports whether users can sign in.
func (s Source) Enabled() bool { return s.Header != "" || s.Bearers() }

// Bearers reports whether a bearer is a user's key or token instead of a session's secret.
func (s Source) Bearers() bool { return s.Keys != nil || s.Tokens != nil }

// Identity is a user and the proof of the user.
type Identity struct {
	User
	// Bearer says that the Authorization header has named the user. Ends is when the identity ends; zero means never.
	Bearer bool
	Ends   time.Time
	// Still reports whether the proof still names this user with these groups; nil is always, until Ends.
	Still func() bool
}

// Of returns the user of a request, or the zero user if it names none. It fails with [ErrHeader], [ErrUnauthenticated]
// and [ErrUnavailable].
func (s Source) Of(r *http.Request) (Identity, error) {
	named, err := s.named(r)
	if err != nil {
		return Identity{}, err
	}
	if !s.Bearers() {
		return Identity{User: named}, nil
	}
	token, err := socketBearer(r)
	if r.Header.Get("Authorization") != "" {
		token, err = Bearer(r, maxToken)
	} else if token == "" && err == nil {
		return Identity{User: named}, nil
	}
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
	return s.OfBearer(r.Context(), token)
}

// OfBearer returns the user of a key or token. It fails with [ErrUnauthenticated] and [ErrUnavailable].
func (s Source) OfBearer(ctx context.Context, token string) (Identity, error) {
	if s.Keys != nil {
		if u, ok := s.Keys().Of(token); ok {
			return Identity{User: u, Bearer: true, Still: func() bool {
				now, ok := s.Keys().Of(token)
				return ok && now.Name == u.Name && slices.Equal(now.Groups, u.Groups)
			}}, nil
		}
	}
	if s.Tokens == nil {
		return Identity{}, ErrUnauthenticated
	}
	u, ends, err := s.Tokens.User(ctx, token)
	return Identity{User: u, Bearer: true, Ends: ends}, err
}

// named returns the user that a proxy names.
func (s Source) named(r *http.Request) (User, error) {
	name, err := s.header(r, s.Header)
	if err != nil {
		return User{}, err
	}
	groups, err := s.header(r, s.GroupsHeader)
	if name == "" || err != nil {
		return User{}, err
	}
	u := User{Name: name}
	for _, group := range strings.Split(groups, ",") {
		if group = strings.TrimSpace(group); group != "" {
			u.Groups = append(u.Groups, group)
		}
	}
	return u, nil
}

func (s Source) header(r *http.Request, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	values := r.Header.Values(name)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || s.Trusted == nil || !s.Trusted(r):
		return "", ErrHeader
	}
	return strings.TrimSpace(values[0]), nil
}

// errBearer means that the Authorization header is of another kind.
var errBearer = errors.New("the header is not Bearer and one word, or the subprotocol is not base64url")

// Bearer returns the secret in the Authorization header.
func Bearer(r *http.Request, longest int) (string, error) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > longest {
		return "", errBearer
	}
	return secret, nil
}

const (
	// SocketProtocol is the subprotocol of a WebSocket whose client names its user. Browsers set no other header of a WebSocket.
	SocketProtocol = "holdfast"
	// socketPrefix begins the subprotocol that has the key or token, in base64url without padding.
	socketPrefix = SocketProtocol + ".bearer."
)

// socketBearer returns the key or token that a client offers as a subprotocol of a WebSocket; empty is none. A server never answers
// with that subprotocol.
func socketBearer(r *http.Request) (string, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", nil
	}
	for _, offered := range strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(offered), socketPrefix)
		if !ok {
			continue
		}
		token, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(token) == 0 || len(token) > maxToken {
			return "", errBearer
		}
		return string(token), nil
	}
	return "", nil
}
