// Command benchserver measures a running holdfast beside etcd's own mutex, a Redis lock and Apache's WebDAV, and prints a table. It is
// a separate module, so that the product does not depend on what it is compared with.
//
//	benchserver [-seconds 20] [-only waiting] path/to/holdfast
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	seconds := flag.Int("seconds", 20, "how long 10,000 locks are kept alive")
	only := flag.String("only", "", "measure only what bears one of these `names`, as waiting,save")
	update := flag.String("update", "", "write the table into this `document`, between its marks")
	rounds := flag.Int("rounds", 3000, "how often each contender acquires and releases")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: benchserver [-seconds 20] [-update document] path/to/holdfast")
		os.Exit(2)
	}
	t := table{load: load()}
	err := t.run(flag.Arg(0), strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }), *rounds, time.Duration(*seconds)*time.Second)
	if err == nil {
		fmt.Print(t.String())
		err = t.write(*update)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchserver:", err)
		os.Exit(1)
	}
}

func (t *table) run(binary string, only []string, rounds int, keep time.Duration) error {
	if len(only) == 0 || slices.Contains(only, "start") {
		if err := t.start(binary); err != nil {
			return err
		}
	}
	// Each measurement has its own server, so that the data of another one does not affect it.
	for _, m := range []struct {
		name    string
		measure func(*server) error
	}{
		{"cycle", func(s *server) error {
			return t.acquire("holdfast, HTTP on loopback", "0.5 ms, 3 ms", rounds, holdfastCycle(s))
		}},
		{"etcd", func(s *server) error { return etcdPut(t, s, rounds) }},
		{"etcd", func(s *server) error { return etcdMutex(t, s, rounds) }},
		{"redis", func(*server) error { return redis(t, rounds, "redsync, Redis as it comes", "no") }},
		{"redis", func(*server) error { return redis(t, rounds, "redsync, Redis that syncs every write", "yes") }},
		{"events", func(s *server) error { return fanOut(t, s, 1000, 50) }},
		{"waiting", func(s *server) error { return waiting(t, s, binary, 200) }},
		{"waiting", func(s *server) error { return waiting(t, s, binary, 5000) }},
		{"save", func(s *server) error { return saves(t, s, 200) }},
		{"dav", func(s *server) error { return dav(t, s, 500) }},
		{"crowd", func(s *server) error { return crowd(t, s, 5, 2*time.Second) }},
		{"identity", func(s *server) error { return identity(t, s, binary, rounds/10) }},
		{"growth", func(s *server) error { return growth(t, s) }},
		{"live", func(s *server) error { return live(t, s, 25_000, 50_000, 100_000) }},
		{"alive", func(s *server) error { return keepAlive(t, s, 10_000, keep) }},
	} {
		if len(only) > 0 && !slices.Contains(only, m.name) {
			continue
		}
		s, err := startServer(binary)
		if err != nil {
			return err
		}
		if err := m.measure(s); err != nil {
			fmt.Fprintln(os.Stderr, "not measured:", err)
		}
		s.stop()
	}
	return nil
}
