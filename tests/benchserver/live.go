package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// live measures the memory of a server with many live locks, and its time to become ready after a restart.
func live(t *table, s *server, steps ...int) error {
	taken := 0
	for _, locks := range steps {
		var group errgroup.Group
		group.SetLimit(64)
		for ; taken < locks; taken++ {
			who := fmt.Sprint("live-", taken%1000)
			path := fmt.Sprint("live/", taken)
			group.Go(func() error {
				return s.do("POST", "/api/locks", who, map[string]any{"paths": [][]string{{path}}, "ttl_ms": 3_600_000}, nil)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // the garbage collector frees the garbage of the acquisitions
		_, before, err := s.usage()
		if err != nil {
			return err
		}
		if err := s.restart(); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		_, after, err := s.usage()
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("%d live locks: memory, memory after a restart, time until it is ready again", locks), "holdfast",
			fmt.Sprintf("%.0f MB, %.0f MB, %.1f s", float64(before)/1e6, float64(after)/1e6, s.readyAfter.Seconds()), "linear")
	}
	return nil
}

// restart stops the server and starts it again with the same data.
func (s *server) restart() error {
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	_ = s.process.Wait()
	return s.run()
}
