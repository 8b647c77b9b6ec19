package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/holdfast-dev/holdfast/server/kv"
)

var _ pb.KVClient = (*connection)(nil)

// Range implements [pb.KVClient].
func (c *connection) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (response *pb.RangeResponse, err error) {
	failed := c.call(ctx, "range", func() {
		if r.Revision > c.store.revision {
			err = rpctypes.ErrFutureRev
			return
		}
		response = c.store.read(r)
	})
	if failed != nil {
		return nil, failed
	}
	return response, err
}

// Txn implements [pb.KVClient].
func (c *connection) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (response *pb.TxnResponse, err error) {
	var refusal error
	err = c.call(ctx, "txn", func() { response, refusal = c.store.carryOut(r) })
	var late *Late
	if errors.As(err, &late) {
		time.AfterFunc(late.After, func() {
			defer late.Done()
			c.store.mu.Lock()
			defer c.store.mu.Unlock()
			_, _ = c.store.carryOut(r)
		})
		err = ErrLost
	}
	if err = cmp.Or(err, refusal); err != nil {
		return nil, err
	}
	return response, nil
}

// carryOut runs a transaction, unless etcd would refuse it. The caller holds the mutex.
func (s *Store) carryOut(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !fits(r, kv.MaxOps) {
		return nil, rpctypes.ErrGRPCTooManyOps
	}
	t := &transaction{s: s, revision: s.revision + 1}
	response := t.run(r)
	if t.refusal != nil {
		return nil, t.refusal
	}
	t.commit()
	response.Header = s.header()
	return response, nil
}

// fits reports whether no list of a transaction is longer than a limit. For the lists of a transaction inside it, the
// limit is what remains.
func fits(r *pb.TxnRequest, limit int) bool {
	limit -= max(len(r.Compare), len(r.Success), len(r.Failure))
	return limit >= 0 && !slices.ContainsFunc(slices.Concat(r.Success, r.Failure), func(op *pb.RequestOp) bool {
		return op.GetRequestTxn() != nil && !fits(op.GetRequestTxn(), limit)
	})
}

// Put implements [pb.KVClient].
func (c *connection) Put(context.Context, *pb.PutRequest, ...grpc.CallOption) (*pb.PutResponse, error) {
	panic("memory: changes are made by transactions")
}

// DeleteRange implements [pb.KVClient].
func (c *connection) DeleteRange(context.Context, *pb.DeleteRangeRequest, ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	panic("memory: changes are made by transactions")
}

// RangeStream implements [pb.KVClient].
func (c *connection) RangeStream(context.Context, *pb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[pb.RangeStreamResponse], error) {
	panic("memory: no streams of ranges")
}

// Compact implements [pb.KVClient]. It does nothing.
func (c *connection) Compact(context.Context, *pb.CompactionRequest, ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return &pb.CompactionResponse{Header: c.store.header()}, nil
}

func (s *Store) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: s.revision} }

// read answers a range request from the present state, or as of a revision.
func (s *Store) read(r *pb.RangeRequest) *pb.RangeResponse {
	revision := s.revision
	if r.Revision > 0 {
		revision = r.Revision
	}
	found := s.inRange(r.Key, r.RangeEnd, revision)
	if r.Limit > 0 && int64(len(found)) > r.Limit {
		found = found[:r.Limit]
	}
	response := &pb.RangeResponse{Header: s.header(), Count: int64(len(found))}
	for _, kv := range found {
		if r.CountOnly {
			break
		}
		if r.KeysOnly {
			kv = &mvccpb.KeyValue{Key: kv.Key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision}
		}
		response.Kvs = append(response.Kvs, kv)
	}
	return response
}

// inRange returns the entry of key, or the entries from key to end, in order, as of a revision. An end of one zero byte means
// all keys from key on.
func (s *Store) inRange(key, end []byte, revision int64) (found []*mvccpb.KeyValue) {
	if len(end) == 0 {
		if kv := s.at(string(key), revision); kv != nil {
			found = append(found, kv)
		}
		return found
	}
	first, _ := slices.BinarySearch(s.names, string(key))
	for _, name := range s.names[first:] {
		if name >= string(end) && string(end) != "\x00" {
			break
		}
		if kv := s.at(name, revision); kv != nil {
			found = append(found, kv)
		}
	}
	return found
}

// at returns an entry as of a revision; nil if there was none.
func (s *Store) at(name string, revision int64) *mvccpb.KeyValue {
	past := s.past[name]
	later := sort.Search(len(past), func(i int) bool { return past[i].Kv.ModRevision > revision })
	if later == 0 || past[later-1].Type == clientv3.EventTypeDelete {
		return nil
	}
	return past[later-1].Kv
}

// covers reports whether a range from key to end contains a name. A range without an end contains key alone.
func covers(key, end, name []byte) bool {
	if len(end) == 0 {
		return bytes.Equal(name, key)
	}
	return bytes.Compare(name, key) >= 0 && (bytes.Equal(end, []byte{0}) || bytes.Compare(name, end) < 0)
}

// transaction is a transaction in progress. Nothing changes before its commit.
type transaction struct {
	s        *Store
	revision int64
	events   []*clientv3.Event
	refusal  error // a transaction that is refused changes nothing
}

func (t *transaction) run(r *pb.TxnRequest) *pb.TxnResponse {
	held := !slices.ContainsFunc(r.Compare, func(c *pb.Compare) bool { return !t.s.holds(c) })
	ops := r.Failure
	if held {
		ops = r.Success
	}
	response := &pb.TxnResponse{Succeeded: held}
	for _, op := range ops {
		response.Responses = append(response.Responses, t.do(op))
	}
	return response
}

func (t *transaction) do(op *pb.RequestOp) *pb.ResponseOp {
	switch {
	case op.GetRequestRange() != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: t.s.read(op.GetRequestRange())}}
	case op.GetRequestPut() != nil:
		t.put(op.GetRequestPut())
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}}
	case op.GetRequestDeleteRange() != nil:
		d := op.GetRequestDeleteRange()
		for _, kv := range t.s.inRange(d.Key, d.RangeEnd, t.s.revision) {
			t.events = append(t.events, &clientv3.Event{Type: clientv3.EventTypeDelete,
				Kv: &mvccpb.KeyValue{Key: kv.Key, ModRevision: t.revision}})
		}
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{}}}
	case op.GetRequestTxn() != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: t.run(op.GetRequestTxn())}}
	}
	panic("memory: an unknown operation")
}

func (t *transaction) put(r *pb.PutRequest) {
	kv := &mvccpb.KeyValue{Key: r.Key, Value: r.Value, CreateRevision: t.revision, ModRevision: t.revision, Lease: r.Lease}
	if old := t.s.at(string(r.Key), t.s.revision); old != nil {
		kv.CreateRevision = old.CreateRevision
		if r.IgnoreLease {
			kv.Lease = old.Lease
		}
	}
	if kv.Lease != 0 && t.s.leases[clientv3.LeaseID(kv.Lease)] == nil {
		t.refusal = rpctypes.ErrGRPCLeaseNotFound
	}
	t.events = append(t.events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
}

// commit makes the changes at one revision, if there are any.
func (t *transaction) commit() {
	if len(t.events) == 0 {
		return
	}
	s := t.s
	s.revision = t.revision
	for _, e := range t.events {
		name := string(e.Kv.Key)
		if at, known := slices.BinarySearch(s.names, name); !known {
			s.names = slices.Insert(s.names, at, name)
		}
		s.past[name] = append(s.past[name], e)
	}
	s.history = append(s.history, t.events...)
	close(s.changed)
	s.changed = make(chan struct{})
}

// holds reports whether a comparison holds for every key in its range. A comparison of values needs an existing key.
func (s *Store) holds(c *pb.Compare) bool {
	found := s.inRange(c.Key, c.RangeEnd, s.revision)
	if len(found) == 0 {
		return c.Target != pb.Compare_VALUE && compare(c, &mvccpb.KeyValue{})
	}
	return !slices.ContainsFunc(found, func(kv *mvccpb.KeyValue) bool { return !compare(c, kv) })
}

func compare(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var order int
	switch c.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	default:
		panic("memory: an unknown comparison")
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_NOT_EQUAL:
		return order != 0
	case pb.Compare_GREATER:
		return order > 0
	default:
		return order < 0
	}
}
