package kv

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-dev/holdfast/server/traces"
)

// Cond is a condition of a transaction.
type Cond struct{ cmp clientv3.Cmp }

// created compares the revision that created a key, with 0 for a key that does not exist. It fills etcd's comparison in
// place, since each of the client's functions would copy it by reflection.
func created(key string, result pb.Compare_CompareResult, revision int64) (c Cond) {
	compared := c.cmp.GetCompare()
	compared.Key, compared.Target, compared.Result = []byte(key), pb.Compare_CREATE, result
	compared.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: revision}
	return c
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
	c.cmp.GetCompare().RangeEnd = []byte(end)
	return c
}

// Unchanged holds if the entry has not changed since it was read. For a key that did not exist, use [Absent].
func Unchanged(e Entry) Cond { return ChangedAt(e.Key, e.Modified) }

// ChangedAt holds if revision is the last one that changed the key. Revision 0 holds for a key that does not exist.
func ChangedAt(key string, revision int64) (c Cond) {
	compared := c.cmp.GetCompare()
	compared.Key, compared.Target = []byte(key), pb.Compare_MOD
	compared.TargetUnion = &pb.Compare_ModRevision{ModRevision: revision}
	return c
}

// CreatedAt holds if the key exists and revision created it. It never holds for 0.
func CreatedAt(key string, revision int64) Cond {
	if revision == 0 {
		revision = -1 // 0 would hold for an absent key
	}
	return created(key, pb.Compare_EQUAL, revision)
}

// Holds holds if the key exists and has this value.
func Holds(key string, value []byte) (c Cond) {
	compared := c.cmp.GetCompare()
	compared.Key, compared.Target = []byte(key), pb.Compare_VALUE
	compared.TargetUnion = &pb.Compare_Value{Value: value}
	return c
}

// Op is an operation of a transaction.
type Op struct{ op clientv3.Op }

// Put sets a key. An existing key keeps the revision that created it.
func Put(key string, value []byte) Op { return Op{clientv3.OpPut(key, string(value))} }

// PutBound sets a key that is deleted when the lease ends.
func PutBound(key string, value []byte, lease *Lease) Op {
	return Op{clientv3.OpPut(key, string(value), clientv3.WithLease(lease.id))}
}

// PutKept sets an existing key, which keeps its lease.
func PutKept(key string, value []byte) Op {
	return Op{clientv3.OpPut(key, string(value), clientv3.WithIgnoreLease())}
}

// Delete removes a key. A missing key is no error.
func Delete(key string) Op { return Op{clientv3.OpDelete(key)} }

// DeleteUnder removes every key that begins with prefix.
func DeleteUnder(prefix string) Op { return Op{clientv3.OpDelete(prefix, clientv3.WithPrefix())} }

// Read reads one key. [Result.Reads] contains its entry.
func Read(key string) Op { return Op{clientv3.OpGet(key)} }

// ReadUnder reads every key that begins with prefix, in the order of the keys.
func ReadUnder(prefix string) Op { return Op{clientv3.OpGet(prefix, clientv3.WithPrefix())} }

// ReadSomeUnder is ReadUnder for at most the first limit keys.
func ReadSomeUnder(prefix string, limit int64) Op {
	return Op{clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(limit))}
}

// ReadBetween reads at most limit keys from first, inclusive, to end, exclusive, in order.
func ReadBetween(first, end string, limit int64) Op {
	return Op{clientv3.OpGet(first, clientv3.WithRange(end), clientv3.WithLimit(limit))}
}

// Key is the key of the operation, or the first key of its range.
func (o Op) Key() string { return string(o.op.KeyBytes()) }

// Puts reports whether the operation sets a key.
func (o Op) Puts() bool { return o.op.IsPut() }

// Txn is a transaction. If all conditions hold, Then runs; otherwise Else runs.
type Txn struct {
	If   []Cond
	Then []Op
	Else []Op
	// Apart, if it is not empty, is a name. Transactions with the same name never share a revision.
	Apart string
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
