package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// clients is the number of clients that acquire and release at once.
const clients = 64

// contender is one way to run a cycle of acquire and release, with the costs of its cycles so far.
type contender struct {
	name, target string
	cycle        func(client, i int) error

	cycles         int64
	took           time.Duration
	server, client time.Duration // processor time
}

// crowd measures how many cycles of acquire and release the clients complete per second, beside the same transactions
// on the etcd inside the server, and beside two HTTP requests and two gRPC calls that do nothing. The contenders take
// turns, so that a busy machine slows all of them alike. Other programs change the number of cycles per second, but
// hardly the processor time of one.
func crowd(t *table, s *server, turns int, turn time.Duration) error {
	etcd, err := dialEtcd(s)
	if err != nil {
		return err
	}
	defer etcd.Close()
	ours := &contender{name: "holdfast, HTTP on loopback", target: "80 %", cycle: func(client, i int) error { return holdfastTurn(s, client, i) }}
	bare := &contender{name: "etcd with the same transactions, gRPC over a socket", cycle: func(client, i int) error {
		return etcdCycle(etcd, fmt.Sprint("bare-", client, "-", i))
	}}
	idle := &contender{name: "two HTTP requests that do nothing", cycle: func(int, int) error { return idleTurn(s) }}
	health := healthpb.NewHealthClient(etcd.ActiveConnection())
	idleRPC := &contender{name: "two gRPC calls over the socket that do nothing", cycle: func(int, int) error { return idleCalls(health) }}
	list := []*contender{ours, bare, idle, idleRPC}
	for i := range turns + 1 {
		for _, c := range list {
			if i == 1 { // the first turn is the warm-up
				*c = contender{name: c.name, target: c.target, cycle: c.cycle}
			}
			if err := c.turn(s, turn); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	what := fmt.Sprintf("%d clients acquire and release, ", clients)
	for _, c := range list {
		figure := fmt.Sprintf("%.0f, %.0f %% of etcd's", c.perSecond(), 100*c.perSecond()/bare.perSecond())
		t.add(what+"cycles a second", c.name, figure, c.target)
	}
	for _, c := range list {
		figure := fmt.Sprintf("%.0f µs, %.0f µs", c.each(c.server), c.each(c.client))
		t.add(what+"processor time of a cycle in the server, in the clients", c.name, figure, "")
	}
	return nil
}

func holdfastTurn(s *server, client, i int) error {
	document, secret := fmt.Sprint("crowd-", client, "-", i), "bench-"+strconv.Itoa(client)
	if _, err := s.call("POST", document, secret); err != nil {
		return err
	}
	_, err := s.call("DELETE", document, secret)
	return err
}

// idleTurn sends as many requests as one cycle does, to a path without store access.
func idleTurn(s *server) error {
	for range 2 {
		response, err := s.client.Get(s.base + "/healthz")
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
	}
	return nil
}

// idleCalls makes as many calls as a cycle has transactions. The calls do not use the store.
func idleCalls(health healthpb.HealthClient) error {
	for range 2 {
		if _, err := health.Check(context.Background(), &healthpb.HealthCheckRequest{}); err != nil {
			return err
		}
	}
	return nil
}

func (c *contender) perSecond() float64 { return float64(c.cycles) / c.took.Seconds() }

// each returns a processor time per cycle, in microseconds.
func (c *contender) each(d time.Duration) float64 {
	return float64(d.Microseconds()) / float64(max(c.cycles, 1))
}

// turn makes all clients run cycles for the given time.
func (c *contender) turn(s *server, long time.Duration) error {
	serverBefore, _, err := s.usage()
	if err != nil {
		return err
	}
	clientBefore, _, err := usageOf(os.Getpid())
	if err != nil {
		return err
	}
	var group errgroup.Group
	var done atomic.Int64
	begin := time.Now()
	for client := range clients {
		group.Go(func() error {
			for i := int(c.cycles); time.Since(begin) < long; i++ {
				if err := c.cycle(client, i); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.took += time.Since(begin)
	c.cycles += done.Load()
	serverAfter, _, err := s.usage()
	if err != nil {
		return err
	}
	clientAfter, _, err := usageOf(os.Getpid())
	c.server += serverAfter - serverBefore
	c.client += clientAfter - clientBefore
	return err
}

// etcdCycle runs the transactions of one cycle: those of an acquisition and of a release.
func etcdCycle(c *clientv3.Client, document string) error {
	ctx := context.Background()
	value, event := strings.Repeat("v", 200), strings.Repeat("e", 250)
	claim, beat := "bare/claim/"+document+"/", "bare/beat/"+document
	none := func(prefix string) clientv3.Cmp {
		return clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()
	}
	waits := []clientv3.Cmp{none("bare/wait/" + document + "/"), none("bare/wait/!x")}
	granted, err := c.Txn(ctx).If(append(waits, none(claim), none("bare/claim/!x"))...).
		Then(clientv3.OpPut(beat, "1700000000000"), clientv3.OpPut(claim+"!x", value), clientv3.OpPut("bare/events/"+document, event)).Commit()
	if err != nil {
		return err
	}
	held := clientv3.Compare(clientv3.CreateRevision(claim+"!x"), "=", granted.Header.Revision)
	ended, err := c.Txn(ctx).If(append(waits, held)...).
		Then(clientv3.OpDelete(beat), clientv3.OpDelete(claim+"!x"), clientv3.OpPut("bare/events/"+document, event)).Commit()
	if err == nil && (!granted.Succeeded || !ended.Succeeded) {
		err = errors.New("a bare transaction was refused")
	}
	return err
}
