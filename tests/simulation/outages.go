package simulation

import "time"

// troubleBetween causes a fault between a browser and the server, or in the server.
func (r *run) troubleBetween(b *browser, fault string, d *dice) {
	long := d.between(100*time.Millisecond, time.Minute)
	switch fault {
	case faultLoss:
		r.disturbNetwork(b, long, networkState{lose: pick(d, 0.1, 0.5), slow: pick(d, 0, time.Second)})
	case faultLate:
		r.disturbNetwork(b, long, networkState{late: pick(d, 0.1, 0.3), duplicate: pick(d, 0, 0.3), slow: pick(d, 0, 500*time.Millisecond)})
	case faultCut:
		r.disturbNetwork(b, long, networkState{cut: true})
	case faultServer:
		r.restart(d.n(r.plan.instances), d.between(10*time.Millisecond, time.Minute))
	case faultStore:
		r.failStore(long, pick(d, 0, 0.05, 0.5), pick(d, 0, time.Second, 8*time.Second))
	}
}

// disturbNetwork changes a browser's network for a while.
func (r *run) disturbNetwork(b *browser, long time.Duration, net networkState) {
	r.w.note(b.name, "network for %s: %+v", long, net)
	b.set(net)
	r.faults.Go(func() {
		r.pause(long)
		r.w.note(b.name, "network is well again")
		b.set(networkState{})
	})
}

// restart kills an instance of the server and starts it again.
func (r *run) restart(i int, down time.Duration) {
	r.w.note("service", "instance %d is killed for %s", i, down)
	r.service.mu.Lock()
	up := r.service.instances[i] != nil
	r.service.mu.Unlock()
	if !up {
		return
	}
	r.service.kill(i)
	r.faults.Go(func() {
		r.pause(down)
		r.service.start(i)
		r.w.note("service", "instance %d runs again", i)
	})
}

// failStore makes the server's connection to its store fail for a while.
func (r *run) failStore(long time.Duration, rate float64, stall time.Duration) {
	r.w.note("service", "store for %s: %.0f %% of the requests fail, and they take up to %s", long, 100*rate, stall)
	r.service.set(rate, stall)
	r.faults.Go(func() {
		r.pause(long)
		r.service.set(0, 0)
		r.w.note("service", "store is well again")
	})
}
