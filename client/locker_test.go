package client_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/lock"
	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// The client passes the suite that every Locker passes, but for stealing, which the server does not know.
func TestLocker(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	locktest.RunLockerWithoutSteal(t, func(t *testing.T) func() lock.Locker {
		return func() lock.Locker { return locker{s.client(t, client.Config{})} }
	})
}

// locker is a Locker over a client. A name is a place.
type locker struct{ *client.Client }

const names = "names"

func (l locker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	want := client.Request{Mode: r.Wants[0].Mode, Wait: client.Forever}
	if r.IfAvailable {
		want.Wait = 0
	}
	for _, w := range r.Wants {
		want.Paths = append(want.Paths, []string{names, url.PathEscape(w.Name)}) // a component has 128 bytes
	}
	lease, err := l.Acquire(ctx, want)
	if errors.Is(err, client.ErrDenied) {
		return nil, lock.ErrDenied
	}
	if err != nil {
		return nil, err
	}
	return grant{lease}, nil
}

// grant is a lease whose loss is reported without a look.
type grant struct{ *client.Lease }

func (grant) Look(context.Context, lock.Instant) error { return nil }

func (l locker) Query(ctx context.Context) (s lock.Snapshot, err error) {
	list, err := l.Locks(ctx, names)
	info := func(path []string, mode lock.Mode, id string) lock.Info {
		name, _ := url.PathUnescape(path[1])
		return lock.Info{Name: name, Mode: mode, ClientID: id}
	}
	for _, h := range list.Holders {
		for _, p := range h.Paths {
			s.Held = append(s.Held, info(p, h.Mode, h.HolderID))
		}
	}
	for _, w := range list.Waiters {
		for _, p := range w.Paths {
			s.Pending = append(s.Pending, info(p, w.Mode, w.HolderID))
		}
	}
	return s, err
}
