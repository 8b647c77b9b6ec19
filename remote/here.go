package remote

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/lock"
)

// here is the Locker of this machine, under the names that a document and its places have on the server.
type here Document

// Here implements [lock.Elsewhere].
func (d *Document) Here() lock.Locker { return (*here)(d) }

// Request implements [lock.Locker].
func (h *here) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	local := make([]lock.Want, len(r.Wants))
	for i, w := range r.Wants {
		local[i] = lock.Want{Name: renamed(w.Name, h.resource, h.c.Local.Name()), Mode: w.Mode}
	}
	r.Wants = local
	return h.c.Local.Locker.Request(ctx, r)
}

// Query implements [lock.Locker]. It leaves out what is not of the document.
func (h *here) Query(ctx context.Context) (lock.Snapshot, error) {
	now, err := h.c.Local.Locker.Query(ctx)
	now.Held, now.Pending = h.ours(now.Held), h.ours(now.Pending)
	return now, err
}

func (h *here) ours(all []lock.Info) []lock.Info {
	local := h.c.Local.Name()
	ours := slices.DeleteFunc(all, func(i lock.Info) bool { return i.Name != local && !strings.HasPrefix(i.Name, local+"//") })
	for i := range ours {
		ours[i].Name = renamed(ours[i].Name, local, h.resource)
	}
	return ours
}

func renamed(name, from, to string) string { return to + strings.TrimPrefix(name, from) }
