package simulation

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/lock"
)

// locker is a tab's access to the locks of another process, the browser. A request, an abort and a release take
// effect one step later. Answers and losses come in one order.
type locker struct {
	tab   *tab
	inner lock.Locker
}

type granted struct {
	grant lock.Grant
	err   error
}

// Request implements [lock.Locker].
func (l *locker) Request(ctx context.Context, r lock.Request) (lock.Grant, error) {
	if err := l.tab.step(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.Steal {
		l.tab.w.note(l.tab.name, "steals %s", r.Wants[0].Name)
		l.tab.at.stolen()
		l.tab.at.checkTakeover(l.tab, r.Wants[0].Name)
	}
	asked, stop := context.WithCancel(context.Background())
	defer stop()
	answers, told := make(chan granted, 1), make(chan struct{})
	go func() {
		g, err := l.inner.Request(asked, r)
		answers <- granted{g, err}
		l.tab.inbox.put(func() { close(told) })
	}()
	select {
	case <-told:
		a := <-answers
		switch {
		case a.err != nil:
			return nil, a.err
		case ctx.Err() == nil:
			return newGrant(l.tab, a.grant), nil
		}
		_ = newGrant(l.tab, a.grant).Release(context.Background())
		return nil, context.Cause(ctx)
	case <-ctx.Done():
		if err := l.tab.step(); err == nil {
			return nil, takeBack(answers, stop, context.Cause(ctx))
		}
	case <-l.tab.dead:
	}
	return nil, takeBack(answers, stop, errDead)
}

// takeBack withdraws a request, or releases the grant if it has arrived meanwhile.
func takeBack(answers <-chan granted, stop func(), err error) error {
	stop()
	if a := <-answers; a.err == nil {
		_ = a.grant.Release(context.Background())
	}
	return err
}

// Query implements [lock.Locker].
func (l *locker) Query(ctx context.Context) (lock.Snapshot, error) {
	if err := l.tab.step(); err != nil {
		return lock.Snapshot{}, err
	}
	now, err := l.inner.Query(ctx)
	told := make(chan struct{})
	l.tab.inbox.put(func() { close(told) })
	select {
	case <-told:
		return now, err
	case <-l.tab.dead:
		return lock.Snapshot{}, errDead
	}
}

// grant is the tab's view of a grant.
type grant struct {
	tab      *tab
	inner    lock.Grant
	lost     chan struct{}
	released chan struct{}
	once     sync.Once
}

func newGrant(t *tab, inner lock.Grant) *grant {
	g := &grant{tab: t, inner: inner, lost: make(chan struct{}), released: make(chan struct{})}
	go func() {
		select {
		case <-inner.Lost():
			t.inbox.put(func() { close(g.lost) })
		case <-g.released:
		case <-t.dead:
		}
	}()
	return g
}

// Release implements [lock.Grant].
func (g *grant) Release(ctx context.Context) error {
	if err := g.tab.step(); err != nil {
		return err
	}
	g.once.Do(func() { close(g.released) })
	return g.inner.Release(ctx)
}

// Lost implements [lock.Grant].
func (g *grant) Lost() <-chan struct{} { return g.lost }

// Look implements [lock.Grant].
func (g *grant) Look(context.Context, lock.Instant) error { return nil }
