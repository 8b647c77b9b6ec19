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
// Everything that the simulation itself decides comes from the seed, and no two of its steps happen at the same instant.
// Three things are not the seed's: the order in which the scheduler runs goroutines that are ready at one instant, the
// choice of a select among several ready cases, and the random numbers that the code under test draws itself (identifiers,
// jitter). [Overlay] takes the last two, with the order of maps, from the seed as well: it replaces one file of the Go
// runtime at build time. One P, no asynchronous preemption and no collector during a run leave the first to the
// scheduler's queue. make simulate builds so, and a run can be repeated by its seed alone. Without the overlay, as in make
// test, a seed mostly leads to the same run; what a failing run did is in its trace in any case.
package simulation
