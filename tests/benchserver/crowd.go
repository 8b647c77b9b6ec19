package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// clients is how many clients acquire and release at once.
const clients = 64

// crowd measures how many cycles of acquire and release the clients get through in a second, beside the same transactions on the
// etcd inside the server. The two take turns, so that a busy machine slows both down alike.
func crowd(t *table, s *server, turns int, turn time.Duration) error {
	etcd, err := dialEtcd(s)
	if err != nil {
		return err
	}
	defer etcd.Close()
	var ours, bare float64
	for i := range turns + 1 {
		h, err := cycles(turn, func(who, i int) error {
			room := fmt.Sprint("crowd-", who, "-", i)
			if _, err := s.call("POST", room, "bench-"+strconv.Itoa(who)); err != nil {
				return err
			}
			_, err := s.call("DELETE", room, "bench-"+strconv.Itoa(who))
			return err
		})
		if err != nil {
			return err
		}
		e, err := cycles(turn, func(who, i int) error { return etcdCycle(etcd, fmt.Sprint("bare-", who, "-", i)) })
		if err != nil {
			return err
		}
		if i > 0 { // the first turn is the warm-up
			ours, bare = ours+h, bare+e
		}
	}
	what := fmt.Sprintf("%d clients acquire and release, cycles a second", clients)
	t.add(what, "holdfast, HTTP on loopback", fmt.Sprintf("%.0f, %.0f %% of etcd's", ours/float64(turns), ours/bare*100), "80 %")
	t.add(what, "etcd with the same transactions, gRPC over a socket", fmt.Sprintf("%.0f", bare/float64(turns)), "")
	return nil
}

// cycles has all clients run cycles for a time, and returns how many ended in a second.
func cycles(long time.Duration, cycle func(who, i int) error) (float64, error) {
	var group errgroup.Group
	var done atomic.Int64
	begin := time.Now()
	for who := range clients {
		group.Go(func() error {
			for i := 0; time.Since(begin) < long; i++ {
				if err := cycle(who, i); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds(), err
}

// etcdCycle carries out what the server does for one cycle: the transactions of an acquisition and of a release.
func etcdCycle(c *clientv3.Client, room string) error {
	ctx := context.Background()
	value, event := strings.Repeat("v", 200), strings.Repeat("e", 250)
	claim, beat := "bare/claim/"+room+"/", "bare/beat/"+room
	none := func(prefix string) clientv3.Cmp {
		return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
	}
	waits := []clientv3.Cmp{none("bare/wait/" + room + "/"), none("bare/wait/!x")}
	granted, err := c.Txn(ctx).If(append(waits, none(claim), none("bare/claim/!x"))...).
		Then(clientv3.OpPut(beat, "1700000000000"), clientv3.OpPut(claim+"!x", value), clientv3.OpPut("bare/events/"+room, event)).Commit()
	if err != nil {
		return err
	}
	held := clientv3.Compare(clientv3.CreateRevision(claim+"!x"), "=", granted.Header.Revision)
	ended, err := c.Txn(ctx).If(append(waits, held)...).
		Then(clientv3.OpDelete(beat), clientv3.OpDelete(claim+"!x"), clientv3.OpPut("bare/events/"+room, event)).Commit()
	if err == nil && (!granted.Succeeded || !ended.Succeeded) {
		err = errors.New("a bare transaction was refused")
	}
	return err
}
