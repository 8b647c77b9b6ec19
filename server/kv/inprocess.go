package kv

import (
	"context"
	"errors"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"google.golang.org/grpc"
)

// OverServer returns a store that calls a server of this process directly. [Store.Close] does not stop the server.
func OverServer(s *etcdserver.EtcdServer) *Store { return Over(inProcess(s), txnsOf(s)) }

// inProcess returns a client that calls the server directly, without a connection.
func inProcess(s *etcdserver.EtcdServer) *clientv3.Client {
	client := v3client.New(s)
	client.KV = clientv3.NewKVFromKVClient(uncounted{txnsOf(s), s}, client)
	watches := adapter.WatchServerToWatchClient(v3rpc.NewWatchServer(s))
	client.Watcher = clientv3.NewWatchFromWatchClient(queuedWatches{watches}, client)
	return client
}

// txnsOf returns a client that sends transactions to the server directly.
func txnsOf(s *etcdserver.EtcdServer) pb.KVClient {
	return adapter.KvServerToKvClient(v3rpc.NewQuotaKVServer(s))
}

// uncounted reads pages without counting the keys that follow. For each page, etcd's own Range counts all of them, which takes a third of a
// second for 300,000 keys, and all writes wait meanwhile.
type uncounted struct {
	pb.KVClient
	server *etcdserver.EtcdServer
}

func (u uncounted) Range(ctx context.Context, r *pb.RangeRequest, options ...grpc.CallOption) (*pb.RangeResponse, error) {
	if r.Limit == 0 || r.CountOnly || r.Serializable {
		return u.KVClient.Range(ctx, r, options...)
	}
	if err := u.server.LinearizableReadNotify(ctx); err != nil {
		return nil, err
	}
	response, _, err := txn.Range(ctx, u.server.Logger(), u.server.KV(), r, false)
	if errors.Is(err, mvcc.ErrCompacted) {
		return nil, rpctypes.ErrGRPCCompacted
	}
	return response, err
}

// queuedWatches puts a queue between the watch requests of the client and a server in this process.
//
// etcd's own pipe has no buffer. Its client sends one request at a time and reads no answer meanwhile. Its server
// takes no request while nobody reads its answers. When some dozens of watches end at once, each side waits for the
// other, and all watches of the process stop for good (https://github.com/etcd-io/etcd/issues/20716). Over a
// connection, gRPC's buffers prevent this. With the queue, the client always returns to reading.
type queuedWatches struct{ pb.WatchClient }

func (q queuedWatches) Watch(ctx context.Context, options ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	stream, err := q.WatchClient.Watch(ctx, options...)
	if err != nil {
		return nil, err
	}
	s := &queuedStream{Watch_WatchClient: stream, more: make(chan struct{}, 1)}
	go s.forward()
	return s, nil
}

type queuedStream struct {
	pb.Watch_WatchClient
	more chan struct{}

	mu sync.Mutex
	// queue has at most two requests per watch: its beginning and its end.
	queue []*pb.WatchRequest
}

// Send never blocks. Recv reports the errors of the stream.
func (s *queuedStream) Send(r *pb.WatchRequest) error {
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default: // forward already has a signal
	}
	return nil
}

// forward runs until the stream ends.
func (s *queuedStream) forward() {
	for {
		select {
		case <-s.more:
		case <-s.Context().Done():
			return
		}
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, r := range batch {
			if s.Watch_WatchClient.Send(r) != nil {
				return
			}
		}
	}
}
