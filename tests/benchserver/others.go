package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// dialEtcd connects to the etcd inside the server through its socket.
func dialEtcd(s *server) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"unix:" + filepath.Join(s.dir, "data", "etcd.sock")}})
}

// etcdPut measures the smallest possible commit: one key.
func etcdPut(t *table, s *server, rounds int) error {
	client, err := dialEtcd(s)
	if err != nil {
		return err
	}
	defer client.Close()
	return t.repeat("put one key, p50 and p99", "etcd, gRPC over a socket", "", rounds, func(i int) (time.Duration, error) {
		begin := time.Now()
		_, err := client.Put(context.Background(), "bench/"+strconv.Itoa(i), "")
		return time.Since(begin), err
	})
}

// etcdMutex measures etcd's own mutex over gRPC, on the etcd inside the server.
func etcdMutex(t *table, s *server, rounds int) error {
	client, err := dialEtcd(s)
	if err != nil {
		return err
	}
	defer client.Close()
	session, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	defer session.Close()
	ctx := context.Background()
	return t.acquire("etcd's concurrency.Mutex, gRPC over a socket", "", rounds, func(i int) (time.Duration, error) {
		mutex := concurrency.NewMutex(session, "bench/"+strconv.Itoa(i))
		begin := time.Now()
		if err := mutex.Lock(ctx); err != nil {
			return 0, err
		}
		d := time.Since(begin)
		return d, mutex.Unlock(ctx)
	})
}

// redis measures redsync's SET NX PX on a local server.
func redis(t *table, rounds int, who, sync string) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("redis-server is missing")
	}
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "redis.sock")
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	process := exec.Command(program, "--port", port, "--bind", "127.0.0.1", "--unixsocket", socket, "--dir", dir,
		"--save", "", "--appendonly", sync, "--appendfsync", "always")
	if err := process.Start(); err != nil {
		return err
	}
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	client := goredislib.NewClient(&goredislib.Options{Addr: addr})
	defer client.Close()
	ctx := context.Background()
	for begin := time.Now(); client.Ping(ctx).Err() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			return fmt.Errorf("%s did not start", program)
		}
	}
	locks := redsync.New(goredis.NewPool(client))
	return t.acquire(who, "", rounds, func(i int) (time.Duration, error) {
		mutex := locks.NewMutex("bench:"+strconv.Itoa(i), redsync.WithExpiry(30*time.Second))
		begin := time.Now()
		if err := mutex.Lock(); err != nil {
			return 0, err
		}
		d := time.Since(begin)
		_, err := mutex.Unlock()
		return d, err
	})
}
