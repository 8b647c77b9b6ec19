package kv

import (
	"bytes"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// prefixed puts the keys of transactions under a prefix, as etcd's package namespace does for the requests of its client.
type prefixed struct {
	pb.KVClient
	prefix string
}

// Txn implements [pb.KVClient].
func (p prefixed) Txn(ctx context.Context, r *pb.TxnRequest, options ...grpc.CallOption) (*pb.TxnResponse, error) {
	r = proto.CloneOf(r) // its parts may be in other transactions too
	p.add(r)
	response, err := p.KVClient.Txn(ctx, r, options...)
	p.remove(response.GetResponses())
	return response, err
}

func (p prefixed) add(r *pb.TxnRequest) {
	for _, c := range r.Compare {
		c.Key, c.RangeEnd = p.span(c.Key, c.RangeEnd)
	}
	for _, o := range slices.Concat(r.Success, r.Failure) {
		switch o := o.Request.(type) {
		case *pb.RequestOp_RequestRange:
			o.RequestRange.Key, o.RequestRange.RangeEnd = p.span(o.RequestRange.Key, o.RequestRange.RangeEnd)
		case *pb.RequestOp_RequestPut:
			o.RequestPut.Key, _ = p.span(o.RequestPut.Key, nil)
		case *pb.RequestOp_RequestDeleteRange:
			o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd = p.span(o.RequestDeleteRange.Key, o.RequestDeleteRange.RangeEnd)
		case *pb.RequestOp_RequestTxn:
			p.add(o.RequestTxn)
		}
	}
}

// span puts a key, or a range of keys, under the prefix. An end of one zero byte means no end.
func (p prefixed) span(first, end []byte) (f, e []byte) {
	switch {
	case bytes.Equal(end, []byte{0}):
		end = []byte(clientv3.GetPrefixRangeEnd(p.prefix))
	case len(end) > 0:
		end = append([]byte(p.prefix), end...)
	}
	return append([]byte(p.prefix), first...), end
}

// remove removes the prefix from the keys that were read.
func (p prefixed) remove(list []*pb.ResponseOp) {
	for _, r := range list {
		for _, kv := range r.GetResponseRange().GetKvs() {
			kv.Key = kv.Key[len(p.prefix):]
		}
		p.remove(r.GetResponseTxn().GetResponses())
	}
}
