//go:build js && wasm

package opfs

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hack-pad/safejs"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// A peer is another worker that runs this same program and obeys messages, so that a test can end it during an
// operation. The runner, tests/wasmworker, provides its script.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "peer" {
		runPeer(os.Args[2])
		return
	}
	if must(safejs.Global().Get("wasmworker")).IsUndefined() {
		fmt.Println("opfs: nothing can be tested here: this is no dedicated worker; run it with tests/wasmworker")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// peer is the parent's side.
type peer struct {
	t      *testing.T
	worker safejs.Value
	heard  chan string
}

// shared returns memory that all peers of a test see.
func shared() safejs.Value { return must(must(safejs.Global().Get("SharedArrayBuffer")).New(64)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// startPeer starts a worker and returns once it listens.
func startPeer(t *testing.T, root string, memory safejs.Value) *peer {
	t.Helper()
	p := &peer{t: t, heard: make(chan string, 10000)}
	p.worker = must(must(safejs.Global().Get("Worker")).New("worker.js"))
	var scope jsbridge.Scope
	listener := must(scope.Func(func(args []safejs.Value) any {
		data := must(args[0].Get("data"))
		if kind := must(must(data.Index(0)).String()); kind == "peer" {
			p.heard <- must(must(data.Index(1)).String())
		} else if n := must(data.Length()); n > 1 && kind != "exit" {
			fmt.Print("peer: ", must(must(data.Index(1)).String()))
		}
		return nil
	}))
	must(p.worker.Call("addEventListener", "message", listener))
	module := must(must(safejs.Global().Get("wasmworker")).Get("module"))
	must(p.worker.Call("postMessage", map[string]any{"module": module, "memory": memory,
		"args": []any{"opfs.test", "peer", root}}))
	t.Cleanup(func() { p.kill(); scope.Release() })
	p.expect("ready")
	return p
}

func (p *peer) tell(words ...string) {
	must(p.worker.Call("postMessage", strings.Join(words, "|")))
}

// expect returns the rest of the next message with this prefix.
func (p *peer) expect(prefix string) string {
	p.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case text := <-p.heard:
			if rest, ok := strings.CutPrefix(text, prefix); ok {
				return strings.TrimSpace(rest)
			}
			require.NotContains(p.t, text, "failed", "while %q was expected", prefix)
		case <-limit:
			require.Failf(p.t, "the peer did not answer", "expected %q", prefix)
		}
	}
}

// expectOr returns the next message that has one of the prefixes.
func (p *peer) expectOr(prefixes ...string) string {
	p.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case text := <-p.heard:
			if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
				return text
			}
			require.NotContains(p.t, text, "failed", "while one of %q was expected", prefixes)
		case <-limit:
			require.Failf(p.t, "the peer did not answer", "expected one of %q", prefixes)
		}
	}
}

// kill ends the worker as the end of its tab does: at once and without notice.
func (p *peer) kill() { _, _ = p.worker.Call("terminate") }

// runPeer is the peer's side: commands are words between bars.
func runPeer(root string) {
	s := &peerSide{root: root, locks: must(NewFileLocks(strings.TrimPrefix(root, inDatabase), Options{Tables: newTables()})),
		grants: make(map[string]lock.Grant)}
	commands := make(chan []string, 100)
	var scope jsbridge.Scope
	must(safejs.Global().Call("addEventListener", "message", must(scope.Func(func(args []safejs.Value) any {
		commands <- strings.Split(must(must(args[0].Get("data")).String()), "|")
		return nil
	}))))
	say("ready")
	for words := range commands {
		s.do(words)
	}
}

// peerSide is what a peer works with.
type peerSide struct {
	root   string
	locks  *FileLocks
	grants map[string]lock.Grant
}

func (s *peerSide) do(words []string) {
	switch words[0] {
	case "request":
		s.request(words[1])
	case "release":
		if err := s.grants[words[1]].Release(context.Background()); err != nil {
			say("failed", err.Error())
		}
		say("released", words[1])
	case "turn": // releases the second name and requests the others, in one turn
		s.turn(words[1:])
	case "claim", "renew":
		s.record(words[0], words[1], must(time.ParseDuration(words[2])))
	case "stop at": // hangs at the n-th step of that name
		s.stopAt(words[1], number(words[2]))
	case "hang": // before the n-th operation of the browser
		plant(number(words[1]), hang)
	case "keep open": // hangs with the table open
		s.keepOpen()
	case "save": // stops before the n-th operation
		saveUntil(s.root, number(words[1]))
	case "save over": // stops before the n-th operation of the browser
		store := autosave.NewLayout(newPlace(s.root), SHA256)
		plant(number(words[1]), hang)
		say("at", "the end", fmt.Sprint(takeOver(store)))
	case "save on":
		saveOn(s.root)
	case "journal":
		journalAndWait(s.root)
	case "churn":
		churn(s.locks, words[1], number(words[2]), number(words[3]))
	}
}

func (s *peerSide) request(resource string) {
	g, err := s.locks.Request(context.Background(), want(resource))
	if err != nil {
		say("failed", err.Error())
		return
	}
	s.grants[resource] = g
	say("granted", resource)
	go func() { <-g.Lost(); say("lost", resource) }()
}

// turn says when each operation is answered.
func (s *peerSide) turn(names []string) {
	request := func(name string) func() { return func() { s.request(name) } }
	release := func() { s.do([]string{"release", names[1]}) }
	inOneTurn(s.locks, request(names[0]), release, request(names[2]))()
}

// record claims or renews a record.
func (s *peerSide) record(command, resource string, ttl time.Duration) {
	now := time.Now()
	r := lock.Record{Resource: resource, LeaseID: "lease of " + s.root, OwnerID: "peer", AcquiredAt: now, ExpiresAt: now.Add(ttl)}
	var err error
	if command == "claim" {
		r.Token, err = s.locks.Claim(context.Background(), r, false)
	} else {
		err = s.locks.Renew(context.Background(), r)
	}
	say(command+"ed", fmt.Sprint(r.Token, " ", err))
}

func (s *peerSide) stopAt(name string, n int) {
	s.locks.steps.hook = func(step string) {
		if step == name {
			if n--; n == 0 {
				say("stopped", step)
				select {}
			}
		}
	}
}

func (s *peerSide) keepOpen() {
	ctx := context.Background()
	file := must(s.locks.steps.file.dir.file(ctx, lockFile, true))
	for _, err := openHandle(ctx, file); err != nil; _, err = openHandle(ctx, file) {
		must(0, wait.For(ctx, time.Millisecond))
	}
	say("stopped")
	select {}
}

func number(word string) int { return must(strconv.Atoi(word)) }

func say(words ...string) {
	must(safejs.Global().Call("postMessage", []any{"peer", strings.Join(words, " ")}))
}

// churn acquires and releases a lock n times. It reports how long it waited, in µs, and how many others were granted the lock while it stood in
// line. While it holds, its own number is in the shared memory. A holder whose number it finds there must have
// ended.
func churn(c *FileLocks, name string, n int, number int) {
	memory := must(must(safejs.Global().Get("wasmworker")).Get("memory"))
	cells := must(must(safejs.Global().Get("Int32Array")).New(memory))
	atomics := must(safejs.Global().Get("Atomics"))
	for range n {
		begun, inLine := time.Now(), -1 // the number of grants when the table has the request
		c.steps.hook = func(step string) {
			if step == "closed" && inLine < 0 {
				inLine = must(must(atomics.Call("load", cells, 1)).Int())
			}
		}
		g, err := c.Request(context.Background(), want(name))
		if err != nil {
			say("failed", err.Error())
			return
		}
		waited := time.Since(begun)
		if before := must(must(atomics.Call("exchange", cells, 0, number)).Int()); before != 0 {
			say("after", fmt.Sprint(before))
		}
		others := must(must(atomics.Call("add", cells, 1, 1)).Int()) - inLine
		time.Sleep(2 * time.Millisecond)
		if must(must(atomics.Call("compareExchange", cells, 0, number, 0)).Int()) != number {
			say("failed: two holders")
		}
		if err := g.Release(context.Background()); err != nil {
			say("failed", err.Error())
		}
		say("waited", fmt.Sprint(waited.Microseconds(), " ", others))
	}
	say("done")
}
