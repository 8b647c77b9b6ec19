package kv_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/kv/memory"
)

// drawn draws a transaction over few keys. It reads before it changes. A list that changes anything also puts a key of its own, so it
// makes a revision.
func drawn(r *rand.Rand, own string) (txn kv.Txn) {
	key := func() string { return fmt.Sprintf("%c/%d", 'a'+r.IntN(6), r.IntN(4)) }
	read := func() []kv.Op {
		list := []kv.Op{kv.Read(key()), kv.ReadUnder(key()[:2]), kv.ReadSomeUnder(key()[:2], 1), kv.ReadBetween("a/2", "b/2", 2)}
		from := r.IntN(len(list))
		return list[from : from+r.IntN(2)]
	}
	change := func() []kv.Op {
		return []kv.Op{[]kv.Op{kv.Put(key(), []byte{byte('0' + r.IntN(3))}), kv.Delete(key())}[r.IntN(2)], kv.Put(own, nil)}
	}
	for range r.IntN(3) {
		txn.If = append(txn.If, []kv.Cond{
			kv.Absent(key()), kv.Exists(key()), kv.NoneUnder(key()[:2]), kv.NoneBetween("c/1", "d/2"), kv.Holds(key(), []byte{byte('0' + r.IntN(3))}),
		}[r.IntN(5)])
	}
	txn.Then, txn.Else = append(read(), change()...), read()
	if r.IntN(3) == 0 {
		txn.Else = append(txn.Else, change()...)
	}
	return txn
}

// answered is what a transaction answers, apart from revisions.
func answered(r kv.Result) string {
	text := fmt.Sprint(r.Held)
	for _, entries := range r.Reads {
		for _, e := range entries {
			text += fmt.Sprintf(" %s=%s", e.Key, e.Value)
		}
		text += ";"
	}
	return text
}

// Transactions that share requests have the answers that they have one after the other, in the order of their
// revisions.
func TestSharedRequestsAreAsIfOneAfterTheOther(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	everyWay(t, func(t *testing.T, s *kv.Store) {
		m := memory.New()
		defer m.Close()
		model := m.Client(nil)
		defer func() { assert.NoError(t, model.Close()) }()
		r := rand.New(rand.NewPCG(seed, 0))
		shared := 0
		for range 40 {
			txns, outcomes := make([]kv.Txn, 12), make([]kv.Result, 12)
			waiting := kv.Hold(s)
			var committing sync.WaitGroup
			for i := range txns {
				txns[i] = drawn(r, fmt.Sprint("own/", i))
				committing.Go(func() {
					var err error
					outcomes[i], err = s.Commit(t.Context(), txns[i])
					assert.NoError(t, err)
				})
			}
			waiting(t, len(txns))
			committing.Wait()
			for _, i := range inOrder(txns, outcomes, &shared) {
				alone, err := model.Commit(t.Context(), txns[i])
				require.NoError(t, err)
				require.Equal(t, answered(alone), answered(outcomes[i]))
			}
		}
		assert.Positive(t, shared, "otherwise the test shows nothing")
	})
}

// inOrder returns the places of transactions in the order of their revisions. One that changed nothing is after those that
// made its revision. shared counts those that made a revision together with another one.
func inOrder(txns []kv.Txn, outcomes []kv.Result, shared *int) []int {
	order, puts := make([]int, len(txns)), make([]int, len(txns))
	for i, txn := range txns {
		ran := txn.Else
		if outcomes[i].Held {
			ran = txn.Then
		}
		order[i] = i
		if slices.ContainsFunc(ran, kv.Op.Puts) {
			puts[i] = 1
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(outcomes[i].Revision, outcomes[j].Revision), puts[j]-puts[i])
	})
	for n := 1; n < len(order); n++ {
		if i, j := order[n-1], order[n]; outcomes[i].Revision == outcomes[j].Revision && puts[i]+puts[j] == 2 {
			*shared++
		}
	}
	return order
}
