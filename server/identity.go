package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/follow"
	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/users"
	"github.com/holdfast-dev/holdfast/server/users/oidc"
)

// followed is a file that is read again when it changes.
type followed interface {
	Follow(context.Context, func(error))
	Reload() error
	Name() string
	Report(error, *slog.Logger)
}

// openFiles reads the files of users and permissions, and opens the audit log.
func (s *Server) openFiles() error {
	if path := s.config.APIKeys; path != "" {
		keys, err := follow.Open(users.ParseKeys, path)
		if err != nil {
			return errors.Join(errors.New("the API keys cannot be read"), err)
		}
		s.keys, s.files = keys, append(s.files, keys)
	}
	if c := s.config; c.OIDCIssuer != "" || c.OIDCAudience != "" {
		var secret []byte
		if c.OIDCSecret != "" {
			var err error
			if secret, err = os.ReadFile(c.OIDCSecret); err != nil {
				return errors.Join(errors.New("the secret for the provider cannot be read"), err)
			}
		}
		tokens, err := oidc.New(oidc.Config{Secret: strings.TrimSpace(string(secret)), Issuer: c.OIDCIssuer, Audience: c.OIDCAudience, NameClaim: c.OIDCName, GroupsClaim: c.OIDCGroups})
		if err != nil {
			return err
		}
		s.tokens, s.provider = tokens, tokens
	}
	if path := s.config.Policy; path != "" {
		rules, err := follow.Open(policy.Parse, path)
		if err != nil {
			return errors.Join(errors.New("the policy cannot be read"), err)
		}
		s.rules, s.files = rules.Get, append(s.files, rules)
	}
	if path := s.config.Audit; path != "" {
		var err error
		if s.audit, err = audit.Open(path); err != nil {
			return err
		}
	}
	return nil
}

// policy returns the permissions of users.
func (s *Server) policy(who users.Source) func() *policy.Policy {
	switch {
	case s.rules != nil:
		return s.rules
	case who.Enabled():
		return func() *policy.Policy { return policy.SignedIn }
	}
	return func() *policy.Policy { return policy.Anonymous }
}

// Reload reads the files of users and permissions again, and reopens the audit log. If a file is broken, the log has an error, and the
// former content stays in use.
func (s *Server) Reload() {
	if err := s.audit.Reopen(); err != nil {
		s.config.Log.Error("the audit log cannot be reopened; the former file stays in use", "error", err)
	}
	for _, f := range s.files {
		s.reloaded(f, f.Reload())
	}
}

// reloaded logs that a file has changed, and whether its new contents are in use.
func (s *Server) reloaded(f followed, err error) {
	f.Report(err, s.config.Log)
	entry := audit.Entry{Event: audit.Reloaded, File: f.Name()}
	if err != nil {
		entry.Reason = err.Error()
	}
	if err := s.audit.Write(entry, true); err != nil {
		s.config.Log.Error("the audit log cannot be written", "error", err)
	}
}

// users returns the ways to sign in.
func (s *Server) users(trusted httpapi.Proxies) users.Source {
	source := users.Source{Header: s.config.UserHeader, GroupsHeader: s.config.GroupsHeader, Trusted: trusted.Sent}
	if s.keys != nil {
		source.Keys = s.keys.Get
	}
	source.Tokens = s.tokens
	return source
}
