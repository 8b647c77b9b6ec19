package kv

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
)

// etcd logs slow requests with their keys, and some keys are secrets.
func TestSlowRequestsAreLoggedWithoutKeys(t *testing.T) {
	var out strings.Builder
	log := zapOver(slog.New(slog.NewTextHandler(&out, nil)), new(atomic.Bool))
	txn.WarnOfExpensiveReadOnlyRangeRequest(log, 0, time.Now().Add(-time.Second), &pb.RangeRequest{Key: []byte("socket_instances/secret")}, nil, nil)
	assert.Contains(t, out.String(), "apply request took too long")
	assert.Contains(t, out.String(), "took=")
	assert.NotContains(t, out.String(), "secret")
}
