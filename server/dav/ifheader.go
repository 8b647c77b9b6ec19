package dav

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/sessions"
)

// condition is a condition of the header If: a state token or an entity tag, one of which is empty.
type condition struct {
	not        bool
	token, tag string
}

// noLock is a token that no lock has. A program names it in a condition that always or never holds.
const noLock = "DAV:no-lock"

// conditionList is a list of conditions, all of which must hold for the resource. An empty resource is that of the request.
type conditionList struct {
	resource   string
	conditions []condition
}

// The header's size and the number of its conditions are bounded. Each resource after the first one counts as a further request, because it costs
// several reads of the store.
const maxIf, maxConditions = 16 << 10, 200

var (
	errIf       = httpapi.Refusal(http.StatusBadRequest, "invalid_request", "The header If does not follow RFC 4918, section 10.4, or is too long.")
	errIfFailed = httpapi.Refusal(http.StatusPreconditionFailed, "precondition_failed",
		"No list of the header If holds: a lock has ended, or the content is another one. Nothing was written.")
)

// parseIf reads the header If (RFC 4918, section 10.4.2).
func parseIf(text string) (lists []conditionList, err error) {
	if len(text) > maxIf {
		return nil, errIf
	}
	resource, count := "", 0
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		switch text[0] {
		case '<':
			var ok bool
			if resource, text, ok = enclosed(text, '>'); !ok {
				return nil, errIf
			}
			if text = strings.TrimSpace(text); text == "" || text[0] != '(' {
				return nil, errIf
			}
		case '(':
			list := conditionList{resource: resource}
			if list.conditions, text, err = parseConditions(text[1:]); err != nil {
				return nil, err
			}
			if count += len(list.conditions); count > maxConditions {
				return nil, errIf
			}
			lists = append(lists, list)
		default:
			return nil, errIf
		}
	}
	if len(lists) == 0 {
		return nil, errIf
	}
	return lists, nil
}

// parseConditions reads conditions up to the closing bracket, and returns the text after it.
func parseConditions(text string) (list []condition, rest string, err error) {
	for {
		var c condition
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, ")") && len(list) > 0 {
			return list, text[1:], nil
		}
		if len(text) > 3 && strings.EqualFold(text[:3], "not") {
			c.not, text = true, strings.TrimSpace(text[3:])
		}
		ok := false
		switch {
		case strings.HasPrefix(text, "<"):
			c.token, text, ok = enclosed(text, '>')
		case strings.HasPrefix(text, "["):
			c.tag, text, ok = enclosed(text, ']')
			c.tag = strings.TrimSpace(c.tag)
		}
		if !ok || c.token == "" && c.tag == "" {
			return nil, "", errIf
		}
		list = append(list, c)
	}
}

// enclosed returns the text between the first character and the closing one, and the rest.
func enclosed(text string, end byte) (inner, rest string, ok bool) {
	i := strings.IndexByte(text, end)
	if i < 0 {
		return "", "", false
	}
	return text[1:i], text[i+1:], true
}

// checkIf evaluates the header If, and keeps the tokens that it submits.
func (h *Handler) checkIf(c *call) error {
	c.submitted, c.pinned = map[string]bool{}, map[string]string{}
	header := strings.Join(c.r.Header.Values("If"), " ")
	if header == "" {
		return nil
	}
	lists, err := parseIf(header)
	if err != nil {
		return err
	}
	states, holds := map[string]*state{}, false
	for _, list := range lists {
		for _, one := range list.conditions {
			if one.token != "" && one.token != noLock {
				c.submitted[one.token] = true
			}
		}
		if holds {
			continue
		}
		s, ok := states[list.resource]
		if !ok {
			if err := h.API.CountMore(c.r, c.session, min(len(states), 1)); err != nil {
				return err
			}
			if s, err = h.stateOf(c, list.resource); err != nil {
				return err
			}
			states[list.resource] = s
		}
		holds = s.meets(list.conditions)
		if s.seen && slices.ContainsFunc(list.conditions, func(one condition) bool { return one.tag != "" }) {
			c.pinned[s.id] = s.tag
		}
	}
	if !holds {
		return errIfFailed
	}
	return nil
}

// state is what the conditions of the header If are about.
type state struct {
	tokens map[string]bool
	tag    string
	id     string // of the place
	seen   bool   // the session may see the place
}

func (s *state) meets(conditions []condition) bool {
	for _, c := range conditions {
		holds := c.tag != "" && c.tag == s.tag || c.token != "" && s.tokens[c.token]
		if holds == c.not {
			return false
		}
	}
	return true
}

// stateOf reads the state of a resource. It has no token and no tag if it does not exist, is not on this server, or may not
// be read by the session.
func (h *Handler) stateOf(c *call, resource string) (*state, error) {
	s, p := &state{tokens: map[string]bool{}}, c.place
	if resource != "" {
		var known bool
		if p, known = knownPlace(c.r, resource); !known {
			return s, nil
		}
	}
	n, err := h.look(c.r.Context(), c.session, p)
	if status := httpapi.Status(err); err != nil && (status == http.StatusForbidden || status == http.StatusUnauthorized) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.id, s.seen, s.tag = p.id(), true, n.info.ETag
	leases, err := h.leasesOver(c.r.Context(), p)
	for _, l := range leases {
		if c.session.Owns(l.Holder.ID) {
			s.tokens[tokenOf(l)] = true
		}
	}
	return s, err
}

// knownPlace returns the place of a URL, if there is one on this server.
func knownPlace(r *http.Request, text string) (place, bool) {
	p, err := placeOfURL(r, text)
	return p, err == nil
}

// placeOfURL returns the place of a URL in a header of a request.
func placeOfURL(r *http.Request, text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && !strings.EqualFold(u.Host, r.Host) || u.Opaque != "" {
		return nil, errElsewhere
	}
	return parsePlace(u.EscapedPath())
}

// leases returns the leases at a path, above it and below it.
func (h *Handler) leases(ctx context.Context, p locks.Path) ([]locks.Lease, error) {
	return h.someLeases(ctx, p, func([]locks.Path) bool { return true })
}

// leasesOver returns the exclusive leases that cover a place. It looks at none of those below it, of which there may be many.
func (h *Handler) leasesOver(ctx context.Context, p place) ([]locks.Lease, error) {
	return h.someLeases(ctx, p.members(), func(paths []locks.Path) bool { return covering(paths, p) >= 0 })
}

// someLeases returns the leases at a path, above it and below it, if keep returns true for their paths. With too many, it returns some of them
// and errTooMany.
func (h *Handler) someLeases(ctx context.Context, p locks.Path, keep func([]locks.Path) bool) (list []locks.Lease, err error) {
	for after := ""; ; {
		page, err := h.Locks.ListVisible(ctx, p, after, locks.MaxPage, keep)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Holders...)
		if after = page.Next; after == "" || len(page.Waiters) > 0 {
			return list, nil
		}
		if len(list) > maxMembers {
			return list, errTooMany
		}
	}
}

// covers reports whether a lease is on a place or on a collection around it, or on the members of the place.
func covers(l locks.Lease, p place) bool { return covering(l.Paths, p) >= 0 }

// covering returns the index of the path of a lease that covers a place, or -1.
func covering(paths []locks.Path, p place) int {
	return slices.IndexFunc(paths, func(path locks.Path) bool {
		q, members, ok := placeOf(path)
		return ok && p.within(q) && (!members || len(q) == len(p))
	})
}

// owned reports whether the session has submitted the token of its own lease.
func owned(s sessions.Session, submitted map[string]bool, l locks.Lease) bool {
	return s.Owns(l.Holder.ID) && submitted[tokenOf(l)]
}
