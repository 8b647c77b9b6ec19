package kv

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-dev/holdfast/server/traces"
)

// Cond is a condition of a transaction.
type Cond struct{ compare *pb.Compare }

// created compares the revision that created a key, with 0 for a key that does not exist.
func created(key string, result pb.Compare_CompareResult, revision int64) Cond {
	return Cond{&pb.Compare{Key: []byte(key), Target: pb.Compare_CREATE, Result: result,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision}}}
}

// Absent holds if the key does not exist.
func Absent(key string) Cond { return created(key, pb.Compare_EQUAL, 0) }

// Exists holds if the key exists.
func Exists(key string) Cond { return created(key, pb.Compare_GREATER, 0) }

// NoneUnder holds if no key begins with prefix.
func NoneUnder(prefix string) Cond { return NoneBetween(prefix, clientv3.GetPrefixRangeEnd(prefix)) }

// NoneBetween holds if no key exists from first, inclusive, to end, exclusive.
func NoneBetween(first, end string) Cond {
	c := Absent(first)
	c.compare.RangeEnd = []byte(end)
	return c
}

// Unchanged holds if the entry has not changed since it was read. For a key that did not exist, use [Absent].
func Unchanged(e Entry) Cond { return ChangedAt(e.Key, e.Modified) }

// ChangedAt holds if revision is the last one that changed the key. Revision 0 holds for a key that does not exist.
func ChangedAt(key string, revision int64) Cond {
	return Cond{&pb.Compare{Key: []byte(key), Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision}}}
}

// CreatedAt holds if the key exists and revision created it. It never holds for 0.
func CreatedAt(key string, revision int64) Cond {
	if revision == 0 {
		revision = -1 // 0 would hold for an absent key
	}
	return created(key, pb.Compare_EQUAL, revision)
}

// Holds holds if the key exists and has this value.
func Holds(key string, value []byte) Cond {
	return Cond{&pb.Compare{Key: []byte(key), Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: value}}}
}

// Read reads at most limit of the keys that the condition is about, in order.
func (c Cond) Read(limit int64) Op {
	return read(&pb.RangeRequest{Key: c.compare.Key, RangeEnd: c.compare.RangeEnd, Limit: limit})
}

// Op is an operation of a transaction, in the form in which etcd receives it. The client's own form would be copied several times.
type Op struct{ request *pb.RequestOp }

// Put sets a key. An existing key keeps the revision that created it. The caller does not change the value afterwards.
func Put(key string, value []byte) Op { return put(&pb.PutRequest{Key: []byte(key), Value: value}) }

// PutBound sets a key that is deleted when the lease ends.
func PutBound(key string, value []byte, lease *Lease) Op {
	return put(&pb.PutRequest{Key: []byte(key), Value: value, Lease: int64(lease.id)})
}

// PutKept sets an existing key, which keeps its lease.
func PutKept(key string, value []byte) Op {
	return put(&pb.PutRequest{Key: []byte(key), Value: value, IgnoreLease: true})
}

func put(r *pb.PutRequest) Op {
	return Op{&pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}}
}

// Delete removes a key. A missing key is no error.
func Delete(key string) Op { return remove(&pb.DeleteRangeRequest{Key: []byte(key)}) }

// DeleteUnder removes every key that begins with prefix.
func DeleteUnder(prefix string) Op {
	return remove(&pb.DeleteRangeRequest{Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix))})
}

func remove(r *pb.DeleteRangeRequest) Op {
	return Op{&pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}}
}

// Read reads one key. [Result.Reads] contains its entry.
func Read(key string) Op { return read(&pb.RangeRequest{Key: []byte(key)}) }

// ReadUnder reads every key that begins with prefix, in the order of the keys.
func ReadUnder(prefix string) Op { return ReadSomeUnder(prefix, 0) }

// ReadSomeUnder is ReadUnder for at most the first limit keys. Limit 0 means all.
func ReadSomeUnder(prefix string, limit int64) Op {
	return ReadBetween(prefix, clientv3.GetPrefixRangeEnd(prefix), limit)
}

// ReadBetween reads at most limit keys from first, inclusive, to end, exclusive, in order.
func ReadBetween(first, end string, limit int64) Op {
	return read(&pb.RangeRequest{Key: []byte(first), RangeEnd: []byte(end), Limit: limit})
}

func read(r *pb.RangeRequest) Op {
	return Op{&pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}}
}

// Key is the key of the operation, or the first key of its range.
func (o Op) Key() string { first, _ := o.span(); return string(first) }

// Puts reports whether the operation sets a key.
func (o Op) Puts() bool { return o.request.GetRequestPut() != nil }

func (o Op) reads() bool { return o.request.GetRequestRange() != nil }

// span returns the key of the operation, or its first key and the end of its range.
func (o Op) span() (first, end []byte) {
	switch r := o.request.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return r.RequestRange.Key, r.RequestRange.RangeEnd
	case *pb.RequestOp_RequestDeleteRange:
		return r.RequestDeleteRange.Key, r.RequestDeleteRange.RangeEnd
	default:
		return o.request.GetRequestPut().GetKey(), nil
	}
}

// Txn is a transaction. If all conditions hold, Then runs; otherwise Else runs.
type Txn struct {
	If   []Cond
	Then []Op
	Else []Op
	// Apart, if it is not empty, is a name. Transactions with the same name never share a revision.
	Apart string
}

// request is the transaction in the form in which etcd receives it.
func (t Txn) request() *pb.TxnRequest {
	r := &pb.TxnRequest{Compare: make([]*pb.Compare, len(t.If)), Success: requests(t.Then), Failure: requests(t.Else)}
	for i, c := range t.If {
		r.Compare[i] = c.compare
	}
	return r
}

func requests(ops []Op) []*pb.RequestOp {
	list := make([]*pb.RequestOp, len(ops))
	for i, o := range ops {
		list[i] = o.request
	}
	return list
}

// Result is the result of a transaction.
type Result struct {
	// Held reports whether all conditions held, so that Then ran.
	Held bool
	// Revision is the store's revision after the transaction. If the transaction changed anything, it is the revision
	// of the change.
	Revision int64
	// Reads contains the entries of each read in the list that ran, in order.
	Reads [][]Entry
}

// Commit runs a transaction. After an error its outcome is unknown; see the package documentation. Transactions of
// several callers that wait at the same moment may share one etcd transaction and its revision, if none of them reads or
// changes what another one changes. Each one has its own conditions and its own result.
func (s *Store) Commit(ctx context.Context, txn Txn) (Result, error) {
	limit := time.Now().Add(s.timeout)
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	ctx, done := traces.Step(ctx, "etcd transaction")
	result, err := s.commit(ctx, txn, limit)
	done(err)
	return result, err
}

// CommitEach runs independent transactions at one revision, for little more than the cost of one. It reports for each
// whether its conditions held. No two of them may change the same key. Their number and the length of their longest list
// together are at most [MaxOps]. It does not return the results of their reads.
func (s *Store) CommitEach(ctx context.Context, txns []Txn) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	results, err := s.together(ctx, txns)
	if err != nil {
		return nil, err
	}
	held := make([]bool, len(txns))
	for i, r := range results {
		held[i] = r.Held
	}
	return held, nil
}

// resultOf makes the result of a transaction from etcd's responses to the list that ran.
func resultOf(held bool, revision int64, responses []*pb.ResponseOp) Result {
	result := Result{Held: held, Revision: revision}
	for _, r := range responses {
		if r := r.GetResponseRange(); r != nil {
			result.Reads = append(result.Reads, entries(r.Kvs))
		}
	}
	return result
}
