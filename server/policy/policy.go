package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/server/users"
)

// Permission is a set of allowed operations.
type Permission uint8

// The permissions.
const (
	Read Permission = 1 << iota
	Lock
	Write
	Break
	Admin
)

// all is every permission that admin includes.
const all = Read | Lock | Write | Break | Admin

// Rule allows some users operations at a path and below it.
type Rule struct {
	Subject Subject
	Path    Pattern
	May     Permission
	Limits
}

// Limits bound the requests of a user. Zero is no bound.
type Limits struct {
	TTL       time.Duration // of a lock
	Locks     int           // of the user, anywhere
	Documents int           // that the user was the first to save, anywhere
}

// Subject names the users of a rule.
type Subject struct {
	kind byte
	name string
}

const (
	anyone   = 'a'
	signedIn = 's'
	user     = 'u'
	group    = 'g'
)

func (s Subject) matches(u users.User) bool {
	switch s.kind {
	case user:
		return u.Name == s.name
	case group:
		return slices.Contains(u.Groups, s.name)
	case signedIn:
		return u.SignedIn()
	}
	return true
}

// Pattern is a path whose components may end with a star.
type Pattern []component

type component struct {
	text string
	open bool // any suffix may follow
}

func (c component) matches(text string) bool {
	if c.open {
		return strings.HasPrefix(text, c.text)
	}
	return text == c.text
}

// covers reports whether c matches everything that other matches.
func (c component) covers(other component) bool {
	if c.open {
		return strings.HasPrefix(other.text, c.text)
	}
	return !other.open && c.text == other.text
}

// matches reports whether a path is at the pattern or below it.
func (p Pattern) matches(path []string) bool { return len(p) <= len(path) && p.agrees(path) }

// agrees reports whether the components that both have match.
func (p Pattern) agrees(path []string) bool {
	for i := range min(len(p), len(path)) {
		if !p[i].matches(path[i]) {
			return false
		}
	}
	return true
}

// below returns the part of a pattern that is below a path.
func (p Pattern) below(path []string) Pattern {
	narrow := make(Pattern, 0, len(p))
	for _, text := range path {
		narrow = append(narrow, component{text: text})
	}
	return append(narrow, p[len(path):]...)
}

func (p Pattern) covers(other Pattern) bool {
	if len(p) > len(other) {
		return false
	}
	for i, c := range p {
		if !c.covers(other[i]) {
			return false
		}
	}
	return true
}

// Policy is a list of rules. The zero value allows nothing.
type Policy struct{ Rules []Rule }

// May reports whether a user may do something at a path, without the places below it.
func (p *Policy) May(u users.User, path []string, what Permission) bool {
	return p.rule(u, path).May&what == what
}

// Limits returns the bounds for a user's requests at a path.
func (p *Policy) Limits(u users.User, path []string) Limits { return p.rule(u, path).Limits }

// rule returns the first rule that matches.
func (p *Policy) rule(u users.User, path []string) Rule {
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Path.matches(path) && r.Subject.matches(u) {
			return *r
		}
	}
	return Rule{}
}

// everywhere matches every path.
var everywhere = Pattern{{open: true}}

// MayBelow reports whether a user may do something at a path and everywhere below it. An empty path is the root. The result is exact: a rule that
// forbids something below counts unless an earlier rule decides everything that it matches. (Either one rule decides or
// none: in the place of a star, the deciding rules include one for a text that no rule names, and that rule matches all
// texts there.)
func (p *Policy) MayBelow(u users.User, path []string, what Permission) bool {
	var earlier []Pattern
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.Path.agrees(path) || !r.Subject.matches(u) {
			continue
		}
		if len(r.Path) <= len(path) || r.Path.covers(everywhere) {
			return r.May&what == what // it decides everything that the earlier rules left open
		}
		part := r.Path.below(path)
		if r.May&what != what && !slices.ContainsFunc(earlier, func(e Pattern) bool { return e.covers(part) }) {
			return false
		}
		earlier = append(earlier, part)
	}
	return false
}

// MaySomewhere reports whether a user may do something at a path or at a place below it. If it reports false, that is exact.
func (p *Policy) MaySomewhere(u users.User, path []string, what Permission) bool {
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.Path.agrees(path) || !r.Subject.matches(u) {
			continue
		}
		if r.May&what == what {
			return true
		}
		if len(r.Path) <= len(path) || r.Path.covers(everywhere) {
			return false // it decides everything that the earlier rules left open
		}
	}
	return false
}
