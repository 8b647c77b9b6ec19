package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cond is a condition of a transaction.
type Cond struct{ cmp clientv3.Cmp }

// Absent holds while there is no such key.
func Absent(key string) Cond {
	return Cond{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
}

// Exists holds while there is such a key.
func Exists(key string) Cond {
	return Cond{clientv3.Compare(clientv3.CreateRevision(key), ">", 0)}
}

// NoneUnder holds while no key begins with prefix.
func NoneUnder(prefix string) Cond {
	return Cond{clientv3.Compare(clientv3.CreateRevision(prefix), "=", 0).WithPrefix()}
}

// NoneBetween holds while there is no key from first, inclusive, to end, exclusive.
func NoneBetween(first, end string) Cond {
	return Cond{clientv3.Compare(clientv3.CreateRevision(first), "=", 0).WithRange(end)}
}

// Unchanged holds while the entry is as it was read; for the zero value of a key that was not there, use [Absent].
func Unchanged(e Entry) Cond { return ChangedAt(e.Key, e.Modified) }

// ChangedAt holds while revision is the last that changed the key. Beware of 0: that is a key that is not there.
func ChangedAt(key string, revision int64) Cond {
	return Cond{clientv3.Compare(clientv3.ModRevision(key), "=", revision)}
}

// CreatedAt holds while the key is there and revision is the one that created it. It never holds for 0.
func CreatedAt(key string, revision int64) Cond {
	if revision == 0 {
		revision = -1 // 0 would hold for an absent key
	}
	return Cond{clientv3.Compare(clientv3.CreateRevision(key), "=", revision)}
}

// Holds holds while the key is there and has the value.
func Holds(key string, value []byte) Cond {
	return Cond{clientv3.Compare(clientv3.Value(key), "=", string(value))}
}

// Op is an operation of a transaction.
type Op struct{ op clientv3.Op }

// Put sets a key. A key that is there keeps the revision that created it.
func Put(key string, value []byte) Op { return Op{clientv3.OpPut(key, string(value))} }

// PutBound sets a key that goes when the lease does.
func PutBound(key string, value []byte, lease *Lease) Op {
	return Op{clientv3.OpPut(key, string(value), clientv3.WithLease(lease.id))}
}

// PutKept sets a key that is there; it keeps the lease that it is bound to.
func PutKept(key string, value []byte) Op {
	return Op{clientv3.OpPut(key, string(value), clientv3.WithIgnoreLease())}
}

// Delete removes a key; one that is not there is no error.
func Delete(key string) Op { return Op{clientv3.OpDelete(key)} }

// DeleteUnder removes every key that begins with prefix.
func DeleteUnder(prefix string) Op { return Op{clientv3.OpDelete(prefix, clientv3.WithPrefix())} }

// Read reads one key; its entries come in [Result.Reads].
func Read(key string) Op { return Op{clientv3.OpGet(key)} }

// ReadUnder reads every key that begins with prefix, in the order of the keys.
func ReadUnder(prefix string) Op { return Op{clientv3.OpGet(prefix, clientv3.WithPrefix())} }

// ReadSomeUnder is ReadUnder for the first keys alone, at most limit.
func ReadSomeUnder(prefix string, limit int64) Op {
	return Op{clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(limit))}
}

// ReadBetween reads the keys from first, inclusive, to end, exclusive; the first of them, at most limit.
func ReadBetween(first, end string, limit int64) Op {
	return Op{clientv3.OpGet(first, clientv3.WithRange(end), clientv3.WithLimit(limit))}
}

// Key is the key that the operation is about, or the first of its range.
func (o Op) Key() string { return string(o.op.KeyBytes()) }

// Puts reports whether the operation sets a key.
func (o Op) Puts() bool { return o.op.IsPut() }

// Txn is a transaction: if all conditions hold, Then runs, otherwise Else.
type Txn struct {
	If   []Cond
	Then []Op
	Else []Op
}

// Result is what a transaction did.
type Result struct {
	// Held reports whether all conditions held, so that Then was run.
	Held bool
	// Revision is the store's revision after the transaction; if anything was changed, the change is this one's.
	Revision int64
	// Reads are the entries that each read of the list that was run found, in its order.
	Reads [][]Entry
}

// Commit carries out a transaction. With an error its outcome is unknown, see the package's documentation.
func (s *Store) Commit(ctx context.Context, txn Txn) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	response, err := s.client.Txn(ctx).If(compares(txn.If)...).Then(bare(txn.Then)...).Else(bare(txn.Else)...).Commit()
	if err != nil {
		return Result{}, plainError(err)
	}
	result := Result{Held: response.Succeeded, Revision: response.Header.Revision}
	for _, r := range response.Responses {
		if r := r.GetResponseRange(); r != nil {
			result.Reads = append(result.Reads, entries(r.Kvs))
		}
	}
	return result, nil
}

// CommitEach carries out transactions that do not depend on each other, at one revision and for little more than the price
// of one. It reports of each whether its conditions held. No two may change one key, and what they read is not returned.
func (s *Store) CommitEach(ctx context.Context, txns []Txn) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	ops := make([]clientv3.Op, len(txns))
	for i, txn := range txns {
		ops[i] = clientv3.OpTxn(compares(txn.If), bare(txn.Then), bare(txn.Else))
	}
	response, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, plainError(err)
	}
	held := make([]bool, len(txns))
	for i, r := range response.Responses {
		held[i] = r.GetResponseTxn().GetSucceeded()
	}
	return held, nil
}

func compares(list []Cond) []clientv3.Cmp {
	conditions := make([]clientv3.Cmp, len(list))
	for i, c := range list {
		conditions[i] = c.cmp
	}
	return conditions
}

func bare(ops []Op) []clientv3.Op {
	list := make([]clientv3.Op, len(ops))
	for i, o := range ops {
		list[i] = o.op
	}
	return list
}
