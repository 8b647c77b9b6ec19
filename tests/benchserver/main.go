// Command benchserver measures a running holdfast beside etcd's own mutex and a Redis lock, and prints a table. It is a
// module of its own, so that what it compares with is no dependency of the product.
//
//	benchserver [-seconds 20] path/to/holdfast
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	seconds := flag.Int("seconds", 20, "how long 10,000 locks are kept alive")
	rounds := flag.Int("rounds", 3000, "how often each contender acquires and releases")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: benchserver [-seconds 20] path/to/holdfast")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *rounds, time.Duration(*seconds)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "benchserver:", err)
		os.Exit(1)
	}
}

func run(binary string, rounds int, keep time.Duration) error {
	var t table
	if err := t.start(binary); err != nil {
		return err
	}
	// Each on a server of its own, so that none is measured with what another has left.
	for _, measure := range []func(*server) error{
		func(s *server) error {
			return t.acquire("holdfast, HTTP on loopback", "0.5 ms, 3 ms", rounds, holdfastCycle(s))
		},
		func(s *server) error { return etcdPut(&t, s, rounds) },
		func(s *server) error { return etcdMutex(&t, s, rounds) },
		func(*server) error { return redis(&t, rounds, "redsync, Redis as it comes", "no") },
		func(*server) error { return redis(&t, rounds, "redsync, Redis that syncs every write", "yes") },
		func(s *server) error { return fanOut(&t, s, 1000, 50) },
		func(s *server) error { return keepAlive(&t, s, 10_000, keep) },
	} {
		s, err := startServer(binary)
		if err != nil {
			return err
		}
		if err := measure(s); err != nil {
			fmt.Fprintln(os.Stderr, "not measured:", err)
		}
		s.stop()
	}
	t.print()
	return nil
}
