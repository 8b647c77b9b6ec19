package simulation

import (
	"context"
	"errors"
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
	number int // of the acquisitions
}

// work runs until the run calms down or the tab is gone.
func (p *program) work() {
	for p.tab.step() == nil && !p.run.calm() {
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
	limit := o.Timeout
	if o.IfAvailable || o.Timeout == lock.NoWait {
		limit = 0
	}
	var lease lock.Lease
	var err error
	began := time.Now()
	p.run.checker.call(p.tab, "acquiring", limit+slack, func(ctx context.Context) {
		if p.dice.chance(p.run.plan.giveUp) {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, p.dice.between(100*time.Microsecond, 20*time.Second), errGaveUp)
			defer stop()
		}
		if !o.IfAvailable && !o.Steal && whole(o) {
			defer p.run.checker.waiting(&waiter{tab: p.tab, domain: p.domain, remote: p.remote, names: names(o, 0)})()
		}
		lease, err = p.m.Acquire(ctx, o)
	})
	switch {
	case p.tab.gone():
	case err != nil:
		p.refused(o, began, err)
	default:
		p.keep(o, lease)
	}
}

var errGaveUp = errors.New("the program gives up")

func whole(o lock.AcquireOptions) bool {
	return o.Mode == lock.Exclusive && len(o.Path) == 0 && o.Paths == nil && o.Slots < 2
}

// refused checks the reason why there is no lease.
func (p *program) refused(o lock.AcquireOptions, began time.Time, err error) {
	p.tab.w.note(p.tab.name, "has no lease: %v", err)
	p.tab.w.count("refusals")
	switch {
	case errors.Is(err, lock.ErrTimeout), errors.Is(err, lock.ErrAborted):
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

// keep keeps a lease for a while and releases it.
func (p *program) keep(o lock.AcquireOptions, lease lock.Lease) {
	b := &belief{tab: p.tab, domain: p.domain, lease: lease, names: names(o, lease.Slot), steal: o.Steal, remote: p.remote, recorded: p.remote || !p.run.plan.bare && len(o.Path) == 0 && o.Paths == nil && o.Slots < 2}
	p.tab.w.note(p.tab.name, "acquired %s", b)
	p.run.checker.granted(b)
	long := p.dice.between(time.Millisecond, 3*lease.TTL)
	if p.run.plan.hasty {
		long = p.dice.between(10*time.Microsecond, p.run.plan.keeps)
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
