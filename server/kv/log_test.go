package kv

import (
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.uber.org/zap"
)

// etcd logs slow requests with their keys, and some keys are secrets.
func TestSlowRequestsAreLoggedWithoutKeys(t *testing.T) {
	var out strings.Builder
	log := zapOver(slog.New(slog.NewTextHandler(&out, nil)), new(atomic.Bool), nil)
	txn.WarnOfExpensiveReadOnlyRangeRequest(log, 0, time.Now().Add(-time.Second), &pb.RangeRequest{Key: []byte("socket_instances/secret")}, nil, nil)
	assert.Contains(t, out.String(), "apply request took too long")
	assert.Contains(t, out.String(), "took=")
	assert.NotContains(t, out.String(), "secret")
}

// Parts of etcd may go on after a store has not opened, in files that are removed by then. Their errors do not end the
// process, and neither does a panic about a refusal of the system, which is handled as an error.
func TestErrorsOfBrokenStoreEndNothing(t *testing.T) {
	broken := new(atomic.Bool)
	broken.Store(true)
	log := zapOver(slog.New(slog.DiscardHandler), nil, broken)
	for _, fails := range []func(){
		func() { log.Fatal("failed to purge wal file") },
		func() { log.Panic("failed to save snapshot", zap.Error(syscall.ENOSPC)) },
		func() {
			log.Panic("failed to save snapshot", zap.Error(&fs.PathError{Op: "write", Err: syscall.EDQUOT}))
		},
	} {
		ended := make(chan struct{})
		go func() { defer close(ended); fails() }()
		<-ended
	}
}
