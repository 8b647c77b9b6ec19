package policy

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/follow"
)

var words = map[string]Permission{
	"read": Read, "lock": Read | Lock, "write": Read | Write, "break": Read | Break, "admin": all,
}

// Parse reads a policy. Its errors name the line.
func Parse(texts ...[]byte) (*Policy, error) {
	p := &Policy{}
	err := follow.Lines(texts, func(fields []string) error {
		rule, err := parseRule(fields)
		p.Rules = append(p.Rules, rule)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func parseRule(fields []string) (r Rule, err error) {
	if len(fields) < 2 {
		return r, fmt.Errorf("%q has no path: a rule has users, a path and permissions", fields[0])
	}
	if r.Subject, err = parseSubject(fields[0]); err != nil {
		return r, err
	}
	if r.Path, err = parsePattern(fields[1]); err != nil {
		return r, err
	}
	for _, field := range fields[2:] {
		if name, value, limit := strings.Cut(field, "="); limit {
			if err := r.setLimit(name, value); err != nil {
				return r, err
			}
			continue
		}
		may, known := words[field]
		if !known {
			return r, fmt.Errorf("%q is no permission: use read, lock, write, break or admin", field)
		}
		r.May |= may
	}
	return r, nil
}

func parseSubject(text string) (Subject, error) {
	switch text {
	case "anyone":
		return Subject{kind: anyone}, nil
	case "signed-in":
		return Subject{kind: signedIn}, nil
	}
	kind, escaped, _ := strings.Cut(text, ":")
	name, err := url.PathUnescape(escaped)
	if err != nil || name == "" || kind != "user" && kind != "group" {
		return Subject{}, fmt.Errorf("%q names no users: use user:NAME, group:NAME, signed-in or anyone", text)
	}
	return Subject{kind: kind[0], name: name}, nil
}

func parsePattern(text string) (p Pattern, err error) {
	for _, part := range strings.Split(text, "/") {
		c := component{text: part}
		if c.text, c.open = strings.CutSuffix(part, "*"); strings.Contains(c.text, "*") {
			return nil, fmt.Errorf("the path %q has a star inside a component: a star may only be at the end; write %%2A for a literal star", text)
		}
		if c.text, err = url.PathUnescape(c.text); err != nil {
			return nil, fmt.Errorf("the path %q is not escaped correctly: %w", text, err)
		}
		if c.text == "" && !c.open {
			return nil, fmt.Errorf("the path %q has an empty component", text)
		}
		p = append(p, c)
	}
	return p, nil
}

func (l *Limits) setLimit(name, value string) (err error) {
	switch name {
	case "max-ttl":
		if l.TTL, err = time.ParseDuration(value); err == nil && l.TTL < 100*time.Millisecond {
			err = errors.New("the minimum is 100ms")
		}
	case "max-locks":
		l.Locks, err = parseCount(value)
	case "max-documents":
		l.Documents, err = parseCount(value)
	default:
		err = errors.New("the limits are max-ttl, max-locks and max-documents")
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", name, value, err)
	}
	return nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err == nil && n < 1 {
		err = errors.New("the minimum is 1")
	}
	return n, err
}
