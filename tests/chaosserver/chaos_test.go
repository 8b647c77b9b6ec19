package chaosserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

const (
	clients         = 6
	perDocument     = 120 // operations per document, few enough to search the document's history
	activeDocuments = 3
	patience        = 3 * time.Second
)

// world is three servers on one store. The first one runs the store; the others reach it over wires.
type world struct {
	nodes []*node
	wires []*serving.Wire
	begin time.Time

	count   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := tempDir(t)
	w := &world{begin: time.Now()}
	w.nodes = append(w.nodes, newNode(t, dir, ""))
	w.nodes[0].ready(t)
	for range 2 {
		wire := serving.NewWire(t, "unix", filepath.Join(dir, "etcd.sock"))
		w.wires = append(w.wires, wire)
		w.nodes = append(w.nodes, newNode(t, dir, wire.Address()))
	}
	for _, n := range w.nodes {
		n.ready(t)
	}
	return w
}

// perGroup is the number of operations on the documents that are active together. perRound is the number of operations per check, which
// limits the memory. No document is in two rounds.
const perGroup, perRound = perDocument * activeDocuments, perGroup * 280

func TestTheLockTableIsLinearizable(t *testing.T) {
	w := newWorld(t)
	total := int64(number("CHAOS_OPERATIONS", 2000))
	more, most := total, 5*total // on a busy machine few operations are answered between two faults, so it takes more of them
	known, recorded := 0, 0
	for end := min(perRound, total); ; end = min(end+perRound, total) {
		w.round(end)
		recorded += len(w.history)
		for _, o := range w.history {
			if o.Output.(reply).known {
				known++
			}
		}
		t.Logf("%d of %d operations, %d with an answer, in %s", end, total, known, time.Since(w.begin).Round(time.Second))
		requireLinearizable(t, w.history)
		if end == total && (known > recorded/2 || total >= most) {
			break
		}
		if end == total {
			end = (end + perGroup - 1) / perGroup * perGroup
			total = end + more
		}
		w.history = nil
		w.count.Store(end) // each client has counted one operation too many
	}
	assert.Greater(t, known, recorded/2, "most steps took place")
	planted, ok := plantDoubleGrant(w.history)
	require.True(t, ok)
	t.Logf("a second grant among %d operations", len(planted))
	requireLinearizable(t, planted[:len(planted)-1])
	assert.Equal(t, porcupine.Illegal, porcupine.CheckOperationsTimeout(model, planted, 5*time.Minute),
		"a second grant beside the first is seen")
}

// round makes the clients work under faults until the given number of operations have begun.
func (w *world) round(end int64) {
	done := make(chan struct{})
	var faults, working sync.WaitGroup
	faults.Go(func() { w.trouble(done) })
	for i := range clients {
		working.Go(func() { w.work(i, end) })
	}
	working.Wait()
	close(done)
	faults.Wait()
}

// requireLinearizable fails with the history of a document that no order of operations explains.
func requireLinearizable(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	if porcupine.CheckOperationsTimeout(model, history, 5*time.Minute) == porcupine.Ok {
		return
	}
	for _, operations := range byDocument(history) {
		if found := porcupine.CheckOperationsTimeout(model, operations, 5*time.Minute); found != porcupine.Ok {
			slices.SortFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
			for _, o := range operations {
				t.Logf("%d to %d, client %d: %+v → %+v", o.Call, o.Return, o.ClientId, o.Input, o.Output)
			}
			require.Fail(t, string(found))
		}
	}
}

// work is one client: it calls different servers until the run has all its operations.
func (w *world) work(id int, total int64) {
	http := &http.Client{Timeout: patience}
	secret := fmt.Sprint("client ", id)
	for {
		n := w.count.Add(1)
		if n > total {
			return
		}
		first := (n - 1) / perGroup * activeDocuments
		c := call{
			document: fmt.Sprint("r", first+rand.Int64N(activeDocuments)), who: sessions.HolderID(secret),
			verb: []string{"lock", "lock", "unlock", "unlock", "beat", "look"}[rand.IntN(6)],
		}
		at := w.nodes[rand.IntN(len(w.nodes))]
		begin := time.Since(w.begin).Nanoseconds()
		r := ask(http, at.addr, secret, c)
		end := time.Since(w.begin).Nanoseconds()
		if !r.known {
			if c.verb == "look" || c.verb == "beat" {
				continue // the operation left no trace
			}
			end = math.MaxInt64 // it may still take effect
		}
		w.mu.Lock()
		w.history = append(w.history, porcupine.Operation{ClientId: id, Input: c, Call: begin, Output: r, Return: end})
		w.mu.Unlock()
	}
}

var methods = map[string]string{"lock": "POST", "unlock": "DELETE", "beat": "PUT", "look": "GET"}

func ask(client *http.Client, addr, secret string, c call) reply {
	request, err := http.NewRequest(methods[c.verb], "http://"+addr+"/api/documents/"+c.document+"/lock", bytes.NewReader(nil))
	if err != nil {
		return reply{}
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := client.Do(request)
	if err != nil {
		time.Sleep(5 * time.Millisecond) // a dead server refuses at once
		return reply{}
	}
	defer response.Body.Close()
	var body struct {
		Token  int64  `json:"token"`
		Holder string `json:"holder_id"`
	}
	if json.NewDecoder(response.Body).Decode(&body) != nil || response.StatusCode >= 500 {
		return reply{}
	}
	return reply{known: true, status: response.StatusCode, token: body.Token, holder: body.Holder}
}

// trouble kills, stops and disconnects servers until done.
func (w *world) trouble(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(100*time.Millisecond + rand.N(400*time.Millisecond)):
		}
		i := rand.IntN(len(w.nodes))
		switch rand.IntN(3) {
		case 0:
			w.nodes[i].kill()
			if err := w.nodes[i].start(); err != nil {
				panic(err)
			}
		case 1:
			w.nodes[i].signal(syscall.SIGSTOP)
			time.Sleep(rand.N(300 * time.Millisecond))
			w.nodes[i].signal(syscall.SIGCONT)
		case 2:
			wire := w.wires[i%len(w.wires)]
			wire.Cut(true)
			time.Sleep(rand.N(300 * time.Millisecond))
			wire.Cut(false)
		}
	}
}

// plantDoubleGrant adds a grant to another client while a lock is held: between an answered lock and an answered
// look that sees the same holder. It takes the earliest such look, and returns only what began in the same document before the look ended: the time that
// it takes to rule out every order grows exponentially with the operations without an answer.
func plantDoubleGrant(history []porcupine.Operation) (planted []porcupine.Operation, ok bool) {
	end := int64(math.MaxInt64)
	for _, o := range history {
		c, r := o.Input.(call), o.Output.(reply)
		if c.verb != "lock" || r.status != 200 {
			continue
		}
		for _, later := range history {
			l, lr := later.Input.(call), later.Output.(reply)
			if l.document == c.document && l.who == c.who && l.verb == "look" && lr.token == r.token && later.Call > o.Return+2 && later.Return < end {
				end = later.Return
				planted = slices.DeleteFunc(slices.Clone(history), func(o porcupine.Operation) bool { return o.Input.(call).document != c.document || o.Call > end })
				second := c
				second.who = "somebody else"
				planted = append(planted, porcupine.Operation{ClientId: clients, Input: second, Call: o.Return + 1, Return: o.Return + 2,
					Output: reply{known: true, status: 200, token: r.token + 1}})
			}
		}
	}
	return planted, planted != nil
}
