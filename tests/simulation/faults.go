package simulation

import (
	"slices"
	"time"
)

// trouble causes faults, one after the other, until the run calms down.
func (r *run) trouble() {
	d := r.w.dice("trouble")
	if len(r.plan.kinds()) == 0 {
		return
	}
	fault := ""
	for n := 0; r.pause(r.plan.gap(d, n)); n++ {
		at := r.origins[d.n(len(r.origins))]
		tabs := at.others(nil)
		if len(tabs) == 0 {
			continue
		}
		t := tabs[d.n(len(tabs))]
		fault = r.plan.fault(d, fault)
		r.w.count(fault)
		switch fault {
		case faultFreeze:
			r.freeze(r.victim(t, d), r.plan.frozen(d))
		case faultCrash:
			r.crash(t)
		case faultStorage:
			r.failStorage(at, d)
		case faultClock:
			by := r.plan.step(d)
			r.w.note(at.name, "sets its clock by %s", by)
			at.clock.setWall(by)
		case faultSleep:
			r.sleep(at, d.between(time.Second, 5*time.Minute))
		default:
			r.troubleBetween(at.browser, fault, d)
		}
	}
}

// victim returns the tab to freeze: in a quiet run mostly one of the origin's holders, otherwise t.
func (r *run) victim(t *tab, d *dice) *tab {
	if !r.plan.quiet || !d.chance(0.8) {
		return t
	}
	holds := t.at.holders()
	holding := slices.DeleteFunc(t.at.others(nil), func(other *tab) bool { return !holds[other.name] })
	if len(holding) == 0 {
		return t
	}
	return pick(d, holding...)
}

// freeze stops a tab for a while. Most freezes end before the run calms down.
func (r *run) freeze(t *tab, long time.Duration) {
	if !t.runs(0) || !t.freeze() {
		return
	}
	r.w.note(t.name, "is frozen for %s", long)
	r.faults.Go(func() {
		r.pause(long)
		if !t.gone() {
			r.w.note(t.name, "wakes")
		}
		t.thaw()
		r.checker.woken(t)
	})
}

// sleep suspends a machine: the tabs of all its origins stop, and so does its monotonic clock. A machine that sleeps
// goes on sleeping.
func (r *run) sleep(at *origin, long time.Duration) {
	if !at.clock.suspend() {
		return
	}
	var slept []*tab
	for _, o := range r.origins {
		if o.clock != at.clock {
			continue
		}
		for _, t := range o.others(nil) {
			if t.freeze() {
				slept = append(slept, t)
			}
		}
	}
	r.w.note(at.browser.name, "sleeps for %s", long)
	r.faults.Go(func() {
		r.pause(long)
		r.w.note(at.browser.name, "wakes")
		at.clock.resume()
		for _, t := range slept {
			t.thaw()
			r.checker.woken(t)
		}
	})
}

// crash ends a tab and opens another one a moment later, when the machine runs.
func (r *run) crash(t *tab) {
	r.w.note(t.name, "crashes")
	t.crash()
	r.faults.Go(func() {
		r.pause(r.w.steps.between(10*time.Millisecond, 10*time.Second))
		for t.at.clock.sleeps() && r.pause(time.Second) {
		}
		if !r.calm() {
			r.open(t.at)
		}
	})
}

func (r *run) failStorage(at *origin, d *dice) {
	rate, slow := pick(d, 0.0, 0.1, 1.0), pick(d, 0, time.Second, 10*time.Second)
	long := d.between(100*time.Millisecond, 2*time.Minute)
	r.w.note(at.name, "storage fails for %s: %.0f %% of its calls, and they take up to %s", long, 100*rate, slow)
	at.faults.set(rate, slow)
	r.faults.Go(func() {
		r.pause(long)
		r.w.note(at.name, "storage is well again")
		at.faults.set(0, 0)
	})
}
