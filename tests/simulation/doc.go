// Package simulation runs tabs, browsers, origins, machines and servers in virtual time over the real code of lock,
// remote, autosave and the server, and checks their promises.
//
// A run is made from a seed. The seed decides the world (the numbers of browsers, origins, tabs and servers), the
// actions of the programs in the tabs, the duration of each step and message, and the faults with their times. Tabs
// freeze, crash and resume between any two steps, storage fails, clocks jump and drift, and the network delays,
// reorders, duplicates and loses messages. The [checker] observes from outside.
//
// The code under test runs in goroutines of a testing/synctest bubble. A frozen tab does not run: each of its
// goroutines stops at its next read of the clock and at its next call of a port (the browser's locks, storage,
// channel and network). A tab can affect others only through these ports.
//
// # Determinism
//
// Everything that the simulation itself decides comes from the seed, and two of its steps hardly ever happen at one
// instant. The Go runtime decides the rest: the order of goroutines that are ready at one instant, the choice of a
// select among several ready cases, the order of maps, preemption, and the random numbers that the code under test
// draws (identifiers, jitter). The command overlay changes the runtime at build time so that these random numbers
// also come from the seed and nothing is preempted. One P and no garbage collection during a run leave the order to
// the scheduler's queue. make simulate builds this way: about nine of ten seeds then repeat each step. The others
// differ in maps with pointer keys. Without the overlay, as in make test, a seed decides the world and its faults but
// not each step. In any case, the trace of a failing run contains its steps.
package simulation
