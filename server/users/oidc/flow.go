package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/holdfast-dev/holdfast/server/users"
)

// Pending is a sign-in that has begun. It is a secret of the browser that began it.
type Pending struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"` // of PKCE (RFC 7636)
	Redirect string `json:"r"` // where the provider sends the browser
}

// Begin returns the provider's page for signing in, which sends the browser to redirect. It fails with [users.ErrUnavailable].
func (v *Verifier) Begin(redirect string) (page string, p Pending, err error) {
	client, err := v.client(redirect)
	if err != nil {
		return "", p, err
	}
	p = Pending{oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), redirect}
	return client.AuthCodeURL(p.State, oidc.Nonce(p.Nonce), oauth2.S256ChallengeOption(p.Verifier)), p, nil
}

// Finish returns the user's token for what the provider gave the browser. It fails with [users.ErrUnauthenticated] and
// [users.ErrUnavailable].
func (v *Verifier) Finish(ctx context.Context, p Pending, state, code string) (token string, err error) {
	if subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1 || p.State == "" {
		return "", fmt.Errorf("%w: another sign-in has begun since", users.ErrUnauthenticated)
	}
	client, err := v.client(p.Redirect)
	if err != nil {
		return "", err
	}
	given, err := client.Exchange(oidc.ClientContext(ctx, v.plain), code, oauth2.VerifierOption(p.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < 500:
		return "", fmt.Errorf("%w: the provider refuses the code", users.ErrUnauthenticated)
	case err != nil:
		return "", fmt.Errorf("%w: %w", users.ErrUnavailable, err)
	}
	token, _ = given.Extra("id_token").(string)
	verified, err := v.verify(ctx, token)
	if err == nil && verified.Nonce != p.Nonce {
		err = fmt.Errorf("%w: the provider's token is not for this sign-in", users.ErrUnauthenticated)
	}
	if err != nil {
		return "", err
	}
	return token, nil
}

func (v *Verifier) client(redirect string) (*oauth2.Config, error) {
	if _, err := v.ready(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return &oauth2.Config{ClientID: v.config.Audience, ClientSecret: v.config.Secret, Endpoint: v.endpoint, RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}, nil
}
