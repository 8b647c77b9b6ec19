package remote

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/lock"
)

// localLocker is the Locker of this machine, under the names that a document and its places have on the server.
type localLocker Document

// Local implements [lock.RemoteLocker].
func (d *Document) Local() lock.Locker { return (*localLocker)(d) }

// Request implements [lock.Locker].
func (l *localLocker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	wants := make([]lock.Want, len(r.Wants))
	for i, w := range r.Wants {
		wants[i] = lock.Want{Name: renamed(w.Name, l.resource, l.c.Local.Name()), Mode: w.Mode}
	}
	r.Wants = wants
	return l.c.Local.Locker.Request(ctx, r)
}

// Query implements [lock.Locker]. It leaves out locks of other documents.
func (l *localLocker) Query(ctx context.Context) (lock.Snapshot, error) {
	now, err := l.c.Local.Locker.Query(ctx)
	now.Held, now.Pending = l.ours(now.Held), l.ours(now.Pending)
	return now, err
}

func (l *localLocker) ours(all []lock.Info) []lock.Info {
	local := l.c.Local.Name()
	ours := slices.DeleteFunc(all, func(i lock.Info) bool { return i.Name != local && !strings.HasPrefix(i.Name, local+"//") })
	for i := range ours {
		ours[i].Name = renamed(ours[i].Name, local, l.resource)
	}
	return ours
}

func renamed(name, from, to string) string { return to + strings.TrimPrefix(name, from) }
