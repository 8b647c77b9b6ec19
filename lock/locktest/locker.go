// Package locktest contains the fakes of the domain's ports, and the suite that every Locker must pass, fake or real.
package locktest

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// Space is a namespace of locks, shared by the clients that [Space.Client] returns, as the tabs of one browser share
// theirs. Its lockers follow the Web Locks specification and keep everything in memory.
type Space struct {
	mu    sync.Mutex
	queue []*entry // all requests in order of arrival, granted and waiting
}

// NewSpace returns a space in which nothing is locked.
func NewSpace() *Space { return &Space{} }

// Client returns the Locker of one client.
func (s *Space) Client(id string) *Locker { return &Locker{space: s, id: id} }

// Locker is the fake [lock.Locker]. Set the hooks before it is used.
type Locker struct {
	space *Space
	id    string

	// Refuse, if set, may fail a request before it is queued.
	Refuse func(lock.Request) error
	// OnRelease, if set, is the error of every release.
	OnRelease error
}

// entry is one request of one name.
type entry struct {
	client  string
	want    lock.Want
	granted bool
	ready   chan struct{} // closed when granted
	lose    func()        // called when stolen
}

// Request takes the names one after the other.
func (l *Locker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if l.Refuse != nil {
		if err := l.Refuse(r); err != nil {
			return nil, err
		}
	}
	g := &grant{locker: l, lost: make(chan struct{})}
	for _, want := range r.Wants {
		e, err := l.one(ctx, want, r, g.lose)
		if err != nil {
			_ = g.Release(context.WithoutCancel(ctx))
			return nil, err
		}
		g.entries = append(g.entries, e)
	}
	return g, nil
}

func (l *Locker) one(ctx context.Context, want lock.Want, r lock.Request, lose func()) (*entry, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := l.space
	e := &entry{client: l.id, want: want, ready: make(chan struct{}), lose: lose}
	s.mu.Lock()
	switch {
	case r.Steal && r.From != nil && s.heldByOther(e, r.From):
		s.mu.Unlock()
		return nil, lock.ErrDenied
	case r.Steal:
		s.steal(e)
	case r.IfAvailable && !s.grantable(e):
		s.mu.Unlock()
		return nil, lock.ErrDenied
	default:
		s.queue = append(s.queue, e)
	}
	s.grantAll()
	s.mu.Unlock()
	select {
	case <-e.ready:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		s.remove(e)
		return nil, context.Cause(ctx)
	}
	return e, nil
}

// Query lists the requests of all clients.
func (l *Locker) Query(context.Context) (lock.Snapshot, error) {
	l.space.mu.Lock()
	defer l.space.mu.Unlock()
	var s lock.Snapshot
	for _, e := range l.space.queue {
		info := lock.Info{Name: e.want.Name, Mode: e.want.Mode, ClientID: e.client}
		if e.granted {
			s.Held = append(s.Held, info)
		} else {
			s.Pending = append(s.Pending, info)
		}
	}
	return s, nil
}

// Kill drops everything that the client holds or waits for, as the end of a tab does.
func (s *Space) Kill(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(e *entry) bool { return e.client == client })
	s.grantAll()
}

// heldByOther reports whether another client than those holds the name.
func (s *Space) heldByOther(e *entry, clients []string) bool {
	return slices.ContainsFunc(s.queue, func(other *entry) bool {
		return other.granted && other.want.Name == e.want.Name && !slices.Contains(clients, other.client)
	})
}

// steal takes the name from its holders and puts e before all waiters.
func (s *Space) steal(e *entry) {
	s.queue = slices.DeleteFunc(s.queue, func(other *entry) bool {
		if other.granted && other.want.Name == e.want.Name {
			other.lose()
			return true
		}
		return false
	})
	s.queue = slices.Insert(s.queue, 0, e)
}

func (s *Space) remove(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(other *entry) bool { return other == e })
	s.grantAll()
}

// grantAll grants every request that conflicts with none before it.
func (s *Space) grantAll() {
	for i, e := range s.queue {
		if !e.granted && !conflicts(s.queue[:i], e) {
			e.granted = true
			close(e.ready)
		}
	}
}

func (s *Space) grantable(e *entry) bool { return !conflicts(s.queue, e) }

func conflicts(earlier []*entry, e *entry) bool {
	return slices.ContainsFunc(earlier, func(other *entry) bool {
		return other.want.Name == e.want.Name &&
			(other.want.Mode == lock.Exclusive || e.want.Mode == lock.Exclusive)
	})
}

type grant struct {
	locker  *Locker
	entries []*entry
	release sync.Once
	losing  sync.Once
	lost    chan struct{}
}

func (g *grant) Release(context.Context) error {
	g.release.Do(func() {
		for _, e := range slices.Backward(g.entries) {
			g.locker.space.remove(e)
		}
	})
	return g.locker.OnRelease
}

func (g *grant) Lost() <-chan struct{} { return g.lost }

func (g *grant) Look(context.Context, lock.Instant) error { return nil }

func (g *grant) lose() { g.losing.Do(func() { close(g.lost) }) }
