package soak

import (
	"math/rand/v2"
	"time"
)

const (
	machines = 2 // each has an origin and a server
	tabs     = 4 // every second tab belongs to the same machine

	ttl      = 4 * time.Second
	patience = time.Minute      // the maximum wait for a lease, including all faults
	served   = time.Minute      // the maximum time until everybody has ended
	settling = 5 * time.Second  // until all clients of a machine agree on its clock
	leap     = 20 * time.Second // of a clock
)

// fault is one event of a tab, a machine or a server.
type fault struct {
	At, For time.Duration // since the beginning; For is 0 for a fault without a duration
	Kind    string
	Target  int // number of a tab, a machine or a server, depending on the kind
}

// kinds lists the faults, with their weights, their targets, and their minimum durations; up to the same duration is
// added.
var kinds = []struct {
	name    string
	weight  int
	targets string // "tab", "machine" or "server"
	lasts   time.Duration
}{
	{"crash of a tab", 3, "tab", 0},
	{"tab closed and another opened", 2, "tab", 0},
	{"reload", 3, "tab", 0},
	{"navigation away and back", 2, "tab", 0},
	{"worker terminated", 4, "tab", 0},
	{"tab frozen", 3, "tab", ttl * 3 / 4},
	{"process of a tab suspended", 3, "tab", ttl * 3 / 4},
	{"clock set forward and back", 1, "machine", ttl},
	{"machine cut off from its server", 3, "machine", ttl / 4},
	{"no room in the browser's storage", 2, "machine", ttl / 4},
	{"server killed", 2, "server", 0},
	{"server suspended", 2, "server", ttl / 4},
	{"server cut off from the store", 1, "store", ttl / 4},
}

// targets returns the kind of a fault's target.
func (f fault) targets() string {
	for _, k := range kinds {
		if k.name == f.Kind {
			return k.targets
		}
	}
	panic("unknown: " + f.Kind)
}

// shape is the number of targets of each kind.
var shape = map[string]int{"tab": tabs, "machine": machines, "server": machines, "store": 1}

// schedule draws all faults of a run. The same seed, length and pace give the same faults.
func schedule(seed uint64, length, pace time.Duration) []fault {
	random := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	busy := map[string]map[int]time.Duration{"tab": {}, "machine": {}, "server": {}, "store": {}}
	var list []fault
	for at := pace; at < length; at += pace/2 + time.Duration(random.Int64N(int64(pace))) {
		n := random.IntN(total)
		i := 0
		for ; n >= kinds[i].weight; i++ {
			n -= kinds[i].weight
		}
		k := kinds[i]
		f := fault{At: at, Kind: k.name, Target: random.IntN(shape[k.targets])}
		if k.lasts > 0 {
			f.For = k.lasts + time.Duration(random.Int64N(int64(k.lasts)))
		}
		if busy[k.targets][f.Target] > at {
			continue // each target has one fault at a time
		}
		busy[k.targets][f.Target] = at + f.For
		list = append(list, f)
	}
	return list
}
