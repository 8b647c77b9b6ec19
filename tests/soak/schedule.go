package soak

import (
	"math/rand/v2"
	"time"
)

const (
	machines = 2 // an origin each, and a server
	tabs     = 4 // every second one belongs to the same machine

	ttl      = 4 * time.Second
	patience = time.Minute      // the longest that anybody may wait for a lease, all faults included
	served   = time.Minute      // the longest that everybody may take to end
	settling = 5 * time.Second  // until all of a machine agree on its clock
	leap     = 20 * time.Second // of a clock
)

// fault is one thing that happens to a tab, a machine or a server.
type fault struct {
	At, For time.Duration // since the beginning; For is 0 for what is over at once
	Kind    string
	Target  int // number of a tab, a machine or a server, as the kind has it
}

// kinds says what can happen, how often in comparison, to how many targets, and for how long at least; up to as much
// again is added.
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

// targets says what a fault strikes.
func (f fault) targets() string {
	for _, k := range kinds {
		if k.name == f.Kind {
			return k.targets
		}
	}
	panic("unknown: " + f.Kind)
}

// shape is how much there is of what faults can strike.
var shape = map[string]int{"tab": tabs, "machine": machines, "server": machines, "store": 1}

// schedule draws all faults of a run: the same seed, length and pace give the same ones.
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
			continue // one thing at a time for each
		}
		busy[k.targets][f.Target] = at + f.For
		list = append(list, f)
	}
	return list
}
