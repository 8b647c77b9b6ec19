package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// program is the program of a tab: it acquires leases, keeps them for a while and releases them.
type program struct {
	run    *run
	tab    *tab
	dice   *dice
	m      *lock.Manager
	domain string
	remote bool
	number int     // of the acquisitions
	within *belief // the lease around all its leases, or nil
	depth  int     // how many leases are around its leases
}

// work runs until the run calms down, the tab is gone, or the lease around all its leases has ended.
func (p *program) work() {
	for p.tab.step() == nil && !p.run.calm() && (p.within == nil || p.within.lease.Context().Err() == nil) {
		p.once()
		if p.run.plan.hasty {
			p.idle(p.rest())
		} else {
			p.idle(p.dice.between(time.Millisecond, 10*time.Second))
		}
	}
}

// rest is the pause before the next lease of a hasty run.
func (p *program) rest() time.Duration {
	pause := p.dice.between(10*time.Microsecond, p.run.plan.rests)
	if beat := p.run.plan.beat; beat > 0 {
		pause = beat - p.run.w.now()%beat
	}
	return pause
}

// idle waits, but not beyond the end of the tab or the beginning of the calm.
func (p *program) idle(d time.Duration) {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-p.tab.dead:
	case <-p.run.calmed:
	}
}

// slack is the time that a call may take beyond its limit: for an answer, and for cleaning up.
const slack = 13 * time.Second

// once acquires a lease and releases it.
func (p *program) once() {
	o := p.run.plan.options(p.dice, p.remote)
	p.number++
	began := time.Now()
	lease, err := p.acquire(o)
	switch {
	case p.tab.gone():
	case err != nil:
		p.refused(o, began, err)
	default:
		p.keep(o, lease)
	}
}

var errGaveUp = errors.New("the program gives up")

// acquire acquires a lease, nested in the lease around the program's leases.
func (p *program) acquire(o lock.AcquireOptions) (lease lock.Lease, err error) {
	limit := o.Timeout
	if o.IfAvailable || o.Timeout == lock.NoWait {
		limit = 0
	}
	p.run.checker.call(p.tab, "acquiring", limit+slack, func(ctx context.Context) {
		if p.dice.chance(p.run.plan.giveUp) {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, p.dice.between(100*time.Microsecond, 20*time.Second), errGaveUp)
			defer stop()
		}
		if p.within != nil {
			ctx = lock.Within(ctx, p.within.lease)
		} else if !o.IfAvailable && !o.Steal && whole(o) {
			defer p.run.checker.waiting(&waiter{tab: p.tab, domain: p.domain, remote: p.remote, names: names(o, 0)})()
		}
		lease, err = p.m.Acquire(ctx, o)
	})
	return lease, err
}

func whole(o lock.AcquireOptions) bool {
	return o.Mode == lock.Exclusive && len(o.Path) == 0 && o.Paths == nil && o.Slots < 2
}

// refused checks the reason why there is no lease.
func (p *program) refused(o lock.AcquireOptions, began time.Time, err error) {
	p.tab.w.note(p.tab.name, "has no lease: %v", err)
	p.tab.w.count("refusals")
	switch {
	case errors.Is(err, lock.ErrTimeout), errors.Is(err, lock.ErrAborted), p.within != nil && p.refusedNested(err):
	case errors.Is(err, lock.ErrDeadlock) && p.run.plan.nests > 0:
	case errors.Is(err, lock.ErrDenied) || errors.Is(err, lock.ErrFallbackConflict):
		if !o.IfAvailable && o.Timeout != lock.NoWait && !p.tab.at.disturbedSince(began, p.remote) {
			p.tab.w.found("denied", "%s was to wait for its lease, with time left, and got %v", p.tab.name, err)
		}
	default:
		if !p.tab.at.disturbedSince(began, p.remote) {
			p.tab.w.found("code", "%s got %v", p.tab.name, err)
		}
	}
}

// refusedNested reports whether a nested lease may be refused with an error: a lease around it is in the way or has ended.
func (p *program) refusedNested(err error) bool {
	p.tab.w.count("nested refusals")
	return errors.Is(err, lock.ErrReentrant) || p.remote && errors.Is(err, lock.ErrUnsupported) ||
		p.within.lease.Context().Err() != nil || p.within.enclosingEnded()
}

// believed returns the belief in a lease of the program.
func (p *program) believed(o lock.AcquireOptions, lease lock.Lease) *belief {
	if p.within != nil {
		p.tab.w.count("nested grants")
	}
	return &belief{tab: p.tab, domain: p.domain, lease: lease, names: names(o, lease.Slot), steal: o.Steal, remote: p.remote, within: p.within,
		recorded: p.remote || p.within == nil && !p.run.plan.bare && len(o.Path) == 0 && o.Paths == nil && o.Slots < 2}
}

// keep keeps a lease for a while and releases it, perhaps before the leases nested in it.
func (p *program) keep(o lock.AcquireOptions, lease lock.Lease) {
	b := p.believed(o, lease)
	p.tab.w.note(p.tab.name, "acquired %s", b)
	p.run.checker.granted(b)
	long := p.dice.between(time.Millisecond, 3*lease.TTL)
	if p.run.plan.hasty {
		long = p.dice.between(10*time.Microsecond, p.run.plan.keeps)
	}
	if p.depth < maxDepth && p.dice.chance(p.run.plan.nests) {
		defer p.nest(b).Wait() // these leases end with this one
	}
	pause := time.NewTimer(long)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-lease.Done():
	case <-p.tab.dead:
	case <-p.run.calmed:
	}
	if p.tab.awake() != nil {
		return
	}
	if lease.Err() != nil {
		p.tab.w.note(p.tab.name, "lost %s: %v", b, lease.Err())
		p.run.checker.ended(b)
		return
	}
	p.tab.w.note(p.tab.name, "releases %s", b)
	p.run.checker.releases(b)
	var err error
	p.run.checker.call(p.tab, "releasing", slack, func(ctx context.Context) { err = lease.Release(ctx) })
	if _, sleeps := p.tab.slept(); err != nil && !p.tab.gone() && sleeps == b.sleeps && !p.tab.at.disturbedSince(time.Now().Add(-slack), p.remote) && !(p.remote && p.tab.at.unreachedSince(time.Now().Add(-slack))) {
		p.tab.w.found("code", "%s could not release: %v", p.tab.name, err)
	}
}

// maxDepth is the maximum number of leases around a lease.
const maxDepth = 2

// nest begins to acquire leases in a lease.
func (p *program) nest(b *belief) *sync.WaitGroup {
	var nested sync.WaitGroup
	for i := range 1 + p.dice.n(2) {
		nested.Go(p.inside(b, i).work)
	}
	return &nested
}

// inside returns a program of the same tab that acquires leases in a lease.
func (p *program) inside(b *belief, number int) *program {
	inner := *p
	inner.within, inner.depth, inner.number = b, p.depth+1, 0
	inner.dice = p.run.w.dice(fmt.Sprintf("%s.%s.%d", p.tab.name, b.lease.ID, number))
	return &inner
}
