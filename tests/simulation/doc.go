// Package simulation runs tabs, browsers, origins, machines and servers in virtual time over the real code of lock,
// remote, autosave and the server, and checks what they promise.
//
// A run is made from a seed. The seed decides the world (how many browsers, origins, tabs and servers there are), what
// the programs in the tabs do, how long each step and each message takes, and which faults happen when: tabs freeze,
// crash and wake between any two steps, storage fails, clocks jump and drift, and the network delays, reorders,
// duplicates and loses messages. The [checker] watches from outside.
//
// The code under test runs in goroutines of a testing/synctest bubble. A frozen tab does not run: each of its goroutines
// stops at its next look at the clock and at its next call of a port (the browser's locks, storage, channel and network),
// which are the only ways in which a tab can act on anybody else.
//
// # Determinism
//
// Everything that the simulation itself decides comes from the seed, and two of its steps hardly ever happen at one instant.
// The rest is the Go runtime's: the order of goroutines that are ready at one instant, the choice of a select among
// several ready cases, the order of maps, preemption, and the random numbers that the code under test draws (identifiers,
// jitter). The command overlay changes the runtime at build time so that these random numbers come from the seed too and
// nothing is preempted; one P and no collector during a run leave the order to the scheduler's queue. make simulate builds
// so: then about nine seeds of ten repeat each step. The others differ where a map has pointers as keys. Without the
// overlay, as in make test, a seed decides the world and its faults but not each step; what a failing run did is in its
// trace in any case.
package simulation
