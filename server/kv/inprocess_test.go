package kv

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// pipe is the watch of a server that is late to take requests.
type pipe struct {
	pb.WatchClient
	pb.Watch_WatchClient
	ctx   context.Context
	taken chan int64
}

func (p *pipe) Watch(ctx context.Context, _ ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	p.ctx = ctx
	return p, nil
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) Send(r *pb.WatchRequest) error {
	select {
	case p.taken <- r.GetCancelRequest().WatchId:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// A client that ends many watches can read the answers before the server has taken any request.
func TestRequestsOfWatchesDoNotWaitForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := &pipe{taken: make(chan int64)}
		stream, err := queuedWatches{server}.Watch(ctx)
		require.NoError(t, err)
		send := func(from, to int64) {
			for id := from; id < to; id++ {
				end := &pb.WatchCancelRequest{WatchId: id}
				require.NoError(t, stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: end}}))
			}
		}
		send(0, 100)
		assert.Equal(t, int64(0), <-server.taken)
		send(100, 200)
		for id := range int64(199) {
			assert.Equal(t, id+1, <-server.taken, "in their order")
		}
		send(200, 210)
		synctest.Wait()
		cancel() // no goroutine stays behind, although nobody takes these requests
	})
}
