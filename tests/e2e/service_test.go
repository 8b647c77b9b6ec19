package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// services makes a page a tab of the service "sums". Its function add reports to the oracle before it does anything else.
const services = `
let service, starts = 0, terms = [], ended = []
const tell = id => { const request = new XMLHttpRequest(); request.open('POST', '/did?' + id, false); request.send() }
const soon = async act => { for (let n = 0; n < 50; n++) await 0; act() } // after the answer, in the same task
const functions = term => ({
	add: id => { tell(id); return 'did ' + id },
	returns: id => { tell(id); return new Promise(done => { globalThis.returned = () => done('did ' + id) }) },
	later: (id, ms) => { tell(id); return new Promise(done => setTimeout(done, ms, 'did ' + id)) },
	never: id => { tell(id); return new Promise(() => {}) },
	closes: id => { tell(id); void soon(() => service.close()); return 'did ' + id },
	stalls: id => { tell(id); void soon(() => { for (const end = now() + 60_000; now() < end;); }); return 'did ' + id },
	sum: (a, b) => a + b,
	order: (log => n => (log.push(n), log))([]),
	token: () => term.token,
	fails: async (name, message, code) => { throw Object.assign(new (globalThis[name] ?? Error)(message), {name, code}) },
	throws: value => { throw value },
	echo: value => value,
	refuses: () => () => 1,
	module: () => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
	port: port => port.postMessage('from the serving tab'),
	gives: () => { const {port1, port2} = new MessageChannel(); port1.postMessage('given'); return port2 },
})
const join = (name, start = functions) => service = hf.serve(name, term => {
	starts++
	terms.push(term)
	term.signal.addEventListener('abort', () => ended.push(term.signal.reason?.code))
	return start(term)
})
const outcomes = {}
const record = (id, call) => call.then(value => outcomes[id] = value, error => outcomes[id] = error.code ?? String(error))
1`

// witness counts how often each call was made: the functions of the service report to it.
type witness struct {
	mu    sync.Mutex
	calls map[string]int
}

func (w *witness) ServeHTTP(http.ResponseWriter, *http.Request) {}

func (w *witness) count(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[id]
}

// serviceWorld is a browser at a site with a witness.
func serviceWorld(t *testing.T, options browser.Options) (world, *witness) {
	t.Helper()
	seen := &witness{calls: map[string]int{}}
	mux := pages(t, siteDir)
	mux.HandleFunc("POST /did", func(w http.ResponseWriter, r *http.Request) {
		static.SecurityHeaders(w.Header())
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.calls[r.URL.RawQuery]++
	})
	return world{browser.Start(t, options), browser.Serve(t, mux)}, seen
}

// member opens a tab that takes part in the service of that name.
func (w world) member(t *testing.T, name string) *browser.Tab {
	t.Helper()
	tab := w.tab(t, at("worker", "services"))
	tab.MustEval(services, nil)
	tab.MustEval(fmt.Sprintf("join(%q); 1", name), nil)
	return tab
}

// accepted opens two tabs of the service of that name: one that serves, and one with a call that the other has accepted. The
// outcome of the call has the name id.
func (w world) accepted(t *testing.T, seen *witness, name, id, call string) (holder, caller *browser.Tab) {
	t.Helper()
	holder = w.member(t, name)
	holder.WaitFor("service.serving", browser.Limit)
	caller = w.member(t, name)
	caller.MustEval(fmt.Sprintf("await service.call('add', 'first'); record(%q, service.call(%s)); 1", id, call), nil)
	eventually(t, func() bool { return seen.count(id) == 1 }, "the call is not accepted")
	return holder, caller
}

func TestServiceCalls(t *testing.T) {
	t.Parallel()
	w, _ := serviceWorld(t, quick)
	first := w.member(t, "calls")
	first.WaitFor("service.serving", browser.Limit)
	second := w.member(t, "calls")
	for where, tab := range map[string]*browser.Tab{"the serving tab": first, "another tab": second} {
		t.Run(where, func(t *testing.T) {
			assert.Equal(t, 5, browser.Get[int](tab, "await service.call('sum', 2, 3)"))
			assert.True(t, browser.Get[bool](tab, "service.token === await service.call('token')"))
			assert.Equal(t, "TypeError|no|E42", browser.Get[string](tab, "await service.call('fails', 'TypeError', 'no', 'E42').catch(e => e instanceof TypeError && [e.name, e.message, e.code].join('|'))"))
			assert.Equal(t, "Odd|no|7", browser.Get[string](tab, "await service.call('fails', 'Odd', 'no', 7).catch(e => e instanceof Error && [e.name, e.message, e.code].join('|'))"))
			assert.Equal(t, "a text", browser.Get[string](tab, "await service.call('throws', 'a text').catch(e => e)"))
			assert.Equal(t, "number", browser.Get[string](tab, "typeof (await service.call('echo', new Map([[1, new Date(5)]]))).get(1).getTime()"))
			assert.True(t, browser.Get[bool](tab, "{ const value = {a: 1}; const call = service.call('echo', value); value.a = 2; (await call).a === 1 }"), "arguments are copied when the call is made")
			assert.Equal(t, 300.0, browser.Get[float64](tab, "(await Promise.all(Array.from({length: 300}, (_, i) => service.call('sum', i, 0)))).filter((n, i) => n === i).length"))
			for call, want := range map[string]string{
				"'absent'":        "invalid-argument",
				"'toString'":      "invalid-argument",
				"'echo', () => 1": "invalid-argument",
				"7":               "invalid-argument",
				"'refuses'":       "DataCloneError",
			} {
				got := browser.Get[event](tab, "await failure(service.call("+call+").catch(e => { throw Object.assign(new Error(e.message), {name: e.name, code: typeof e.code === 'string' ? e.code : e.name, operation: e.operation}) }))")
				assert.Equal(t, want, got["code"], "%s: %v", call, got)
			}
			assert.Equal(t, "from the serving tab", browser.Get[string](tab, "{ const {port1, port2} = new MessageChannel(); const heard = new Promise(r => port1.onmessage = e => r(e.data)); await service.call('port', port2); await heard }"))
			assert.Equal(t, "given", browser.Get[string](tab, "{ const port = await service.call('gives'); await new Promise(r => port.onmessage = e => r(e.data)) }"))
		})
	}
	const module = "new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))"
	assert.Equal(t, "DataCloneError", browser.Get[string](second, "await service.call('echo', "+module+").catch(e => e.name)"), "no other process can read it")
	assert.Equal(t, "call-lost", browser.Get[string](second, "await service.call('module').catch(e => e.code)"))
	assert.Equal(t, 3, browser.Get[int](second, "await service.call('sum', 1, 2)"), "calls go on")
	assert.Equal(t, 0, browser.Get[int](second, "starts"))
	second.MustEval("for (let n = 0; n < 50; n++) service.call('order', n); 1", nil)
	order := browser.Get[[]int](second, "await service.call('order', 50)")
	for i, n := range order {
		require.Equal(t, i, n, "calls of one tab are accepted in their order")
	}
	first.Quiet()
	second.Quiet()
}

// serviceEnds are the ways in which a serving tab ends.
var serviceEnds = map[string]func(t *testing.T, w world, tab *browser.Tab){
	"service closed":    func(_ *testing.T, _ world, tab *browser.Tab) { tab.MustEval("await service.close(); 1", nil) },
	"holdfast closed":   func(_ *testing.T, _ world, tab *browser.Tab) { tab.MustEval("await hf.close(); 1", nil) },
	"tab closed":        func(_ *testing.T, _ world, tab *browser.Tab) { tab.Close() },
	"page left":         func(_ *testing.T, w world, tab *browser.Tab) { tab.Navigate(w.URL("/blank?elsewhere")) },
	"tab killed":        func(t *testing.T, _ world, tab *browser.Tab) { kill(t, tab) },
	"lock stolen":       func(_ *testing.T, _ world, tab *browser.Tab) { steal(tab, "holdfast:") },
	"term's lock taken": func(_ *testing.T, _ world, tab *browser.Tab) { steal(tab, "holdfast ") },
}

// kill ends the process of a tab that may be busy.
func kill(t *testing.T, tab *browser.Tab) {
	t.Helper()
	pid, err := tab.Renderer()
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// steal takes the lock whose name begins so.
func steal(tab *browser.Tab, prefix string) {
	tab.MustEval(fmt.Sprintf("const {name} = (await navigator.locks.query()).held.find(({name}) => name.startsWith(%q)); navigator.locks.request(name, {steal: true}, () => 1); 1", prefix), nil)
}

// calls makes the tab call the service until the test stops it. A tab awaits an answer when ten of its calls have none, so
// that a slow machine has no more of them to make.
const calls = `
let calling = true, made = 0, longest = 0
const open = new Set()
const callers = (async tab => {
	while (calling) {
		const id = tab + '-' + made++
		const begun = now()
		const sent = record(id, made % 3 ? service.call('add', id) : service.call('later', id, 3)).then(() => {
			longest = Math.max(longest, now() - begun)
			open.delete(sent)
		})
		open.add(sent)
		await new Promise(done => setTimeout(done, 15))
		if (open.size >= 10) await Promise.race(open)
	}
	await Promise.all(open)
})
1`

// However the serving tab ends, each call of another tab is made once or never. It is never made if no tab has accepted
// it, and its caller gets "call-lost" if it may have been made.
func TestServingTabEnds(t *testing.T) {
	t.Parallel()
	for name, end := range serviceEnds {
		t.Run(name, func(t *testing.T) {
			w, seen := serviceWorld(t, quick)
			tabs := []*browser.Tab{w.member(t, name)}
			tabs[0].WaitFor("service.serving", browser.Limit)
			tabs = append(tabs, w.member(t, name), w.member(t, name))
			for i, tab := range tabs[1:] {
				tab.MustEval(calls, nil)
				tab.MustEval(fmt.Sprintf("const over = callers('%d'); record('never', service.call('never', 'never-%d')); 1", i, i), nil)
				tab.WaitFor("Object.keys(outcomes).length > 20", browser.Limit)
			}
			end(t, w, tabs[0])
			for _, tab := range tabs[1:] {
				tab.WaitFor("outcomes.never !== undefined", browser.Limit)
				tab.MustEval("const before = Object.keys(outcomes).length; 1", nil)
				tab.WaitFor("Object.keys(outcomes).length > before + 20", browser.Limit)
				tab.MustEval("calling = false; await over; 1", nil)
			}
			serving := 0
			for i, tab := range tabs[1:] {
				got := browser.Get[map[string]string](tab, "outcomes")
				assert.Equal(t, "call-lost", got["never"])
				assert.Equal(t, 1, seen.count(fmt.Sprintf("never-%d", i)), "it was accepted, so it is not made again")
				lost := 0
				for id, outcome := range got {
					if id == "never" {
						continue
					}
					assert.LessOrEqual(t, seen.count(id), 1, "%s was made twice (%s)", id, outcome)
					switch outcome {
					case "did " + id:
						assert.Equal(t, 1, seen.count(id), "%s was answered and not made", id)
					case "call-lost":
						lost++
					default:
						t.Errorf("%s: %s", id, outcome)
					}
				}
				t.Logf("%d calls, %d lost, longest %.0f ms", len(got), lost, browser.Get[float64](tab, "longest"))
				serving += browser.Get[int](tab, "service.serving ? 1 : 0")
				tab.Quiet()
			}
			assert.Equal(t, 1, serving)
		})
	}
}

// A call that follows an answer at once needs no acceptance of its own: it counts as accepted. If the serving tab is killed, the call
// is not made again, whether the tab had made it or not. All calls behind it are made again, because nobody has accepted them. A tab
// that ends in order says that it has not accepted the call, which is then made again too.
func TestCallAfterAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, next string // functions
		killed      bool
		outcome     string
		count       int // how often the call after the answer was made
	}{
		"killed after it was made":  {first: "add", next: "never", killed: true, outcome: "call-lost", count: 1},
		"killed before it was made": {first: "stalls", next: "add", killed: true, outcome: "call-lost"},
		"closed before it was made": {first: "closes", next: "add", outcome: "did next", count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := serviceWorld(t, quick)
			holder := w.member(t, name)
			holder.WaitFor("service.serving", browser.Limit)
			pid, err := holder.Renderer()
			require.NoError(t, err)
			caller := w.member(t, name)
			caller.MustEval("for (let n = 0; n < 200; n++) await service.call('sum', n, 1); 1", nil) // over a port, without delay
			caller.MustEval(fmt.Sprintf(`
				await service.call('%s', 'first')
				record('next', service.call('%s', 'next'))
				for (let n = 0; n < 3; n++) record('behind-' + n, service.call('%[2]s', 'behind-' + n))
				1`, test.first, test.next), nil)
			if test.killed {
				if test.count > 0 {
					eventually(t, func() bool { return seen.count("behind-2") == 1 }, "the calls are not accepted")
				}
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			caller.WaitFor("Object.keys(outcomes).length === 4", browser.Limit)
			got := browser.Get[map[string]string](caller, "outcomes")
			assert.Equal(t, test.outcome, got["next"])
			assert.Equal(t, test.count, seen.count("next"))
			for n := range 3 {
				id := fmt.Sprintf("behind-%d", n)
				if test.next == "never" {
					assert.Equal(t, "call-lost", got[id], "it was accepted")
				} else {
					assert.Equal(t, "did "+id, got[id])
				}
				assert.Equal(t, 1, seen.count(id))
			}
			caller.Quiet()
		})
	}
}

// A page that was busy learns late that its lease was renewed. Until then its clock says that the lease has expired, and it
// accepts and answers nothing. Then it answers all that came meanwhile: a call, an answer and a new tab.
func TestServingTabLearnsLateOfItsRenewal(t *testing.T) {
	t.Parallel()
	w, seen := serviceWorld(t, quick)
	holder, caller := w.accepted(t, seen, "late", "answer", "'returns', 'answer'")
	holder.MustEval(`
		let connects = 0
		new BroadcastChannel('holdfast services/services/late').onmessage = ({data}) => { if (data.connect) connects++ }
		const clock = Date.now
		Date.now = () => clock() + 16_000 // the TTL is 15 s
		returned()
		await new Promise(done => setTimeout(done, 300))
		1`, nil)
	caller.MustEval("record('call', service.call('add', 'call')); 1", nil)
	next := w.member(t, "late")
	next.MustEval("record('new tab', service.call('add', 'new-tab')); 1", nil)
	holder.WaitFor("connects === 1", browser.Limit)
	assert.Empty(t, browser.Get[map[string]string](caller, "outcomes"))
	holder.MustEval("Date.now = clock; 1", nil)
	// The lease is renewed every five seconds.
	caller.WaitFor("outcomes.answer === 'did answer' && outcomes.call === 'did call'", browser.Limit)
	next.WaitFor("outcomes['new tab'] === 'did new-tab'", browser.Limit)
	assert.Equal(t, []int{1, 1, 1}, []int{seen.count("answer"), seen.count("call"), seen.count("new-tab")})
	assert.Equal(t, 1, browser.Get[int](holder, "starts"), "in the same term")
	for _, tab := range []*browser.Tab{holder, caller, next} {
		tab.Quiet()
	}
}

// A serving tab that is suspended is replaced after fifteen seconds. Calls that wait in its queue are made by its
// successor alone; when it wakes, it makes none of them, and its late answers count for nothing.
func TestFrozenServingTab(t *testing.T) {
	t.Parallel()
	w, seen := serviceWorld(t, quick)
	holder, caller := w.accepted(t, seen, "frozen", "accepted", "'later', 'accepted', 100")
	_, err := holder.Renderer()
	require.NoError(t, err)
	holder.Suspend()
	caller.MustEval("for (let n = 0; n < 20; n++) record('queued-' + n, service.call('add', 'queued-' + n)); 1", nil)
	caller.WaitFor("Object.keys(outcomes).length === 21", 40*time.Second)
	holder.Continue()
	holder.WaitFor("ended.length === 1", browser.Limit)
	assert.Equal(t, "did next", browser.Get[string](holder, "await service.call('add', 'next')"), "it calls its successor")
	got := browser.Get[map[string]string](caller, "outcomes")
	if outcome := got["accepted"]; outcome != "call-lost" {
		assert.Equal(t, "did accepted", outcome, "the answer came before the tab was suspended")
	}
	for n := range 20 {
		id := fmt.Sprintf("queued-%d", n)
		assert.Equal(t, "did "+id, got[id])
		assert.Equal(t, 1, seen.count(id), "%s is made by one of the two", id)
	}
	assert.True(t, browser.Get[bool](caller, "service.serving"))
	assert.False(t, browser.Get[bool](holder, "service.serving"))
	for _, tab := range []*browser.Tab{holder, caller} {
		tab.Quiet()
	}
}

// A page in the back/forward cache neither serves nor waits: the next tab serves at once. The page calls that tab when it is shown again.
func TestServiceInBackForwardCache(t *testing.T) {
	t.Parallel()
	w, seen := serviceWorld(t, whole)
	ann, ben := w.accepted(t, seen, "cached", "never", "'never', 'never'")
	ann.MustEval("globalThis.cached = 1", nil)
	ann.Navigate(w.URL("/blank?elsewhere"))
	ben.WaitFor("outcomes.never === 'call-lost'", browser.Limit)
	assert.Equal(t, "did second", browser.Get[string](ben, "await service.call('add', 'second')"))
	assert.True(t, browser.Get[bool](ben, "service.serving"))
	if !back(t, ann) {
		return
	}
	assert.Equal(t, "did third", browser.Get[string](ann, "await service.call('add', 'third')"))
	assert.Equal(t, []int{1, 1}, []int{seen.count("second"), seen.count("third")})
	assert.False(t, browser.Get[bool](ann, "service.serving"))
	ben.Close()
	assert.Equal(t, "did fourth", browser.Get[string](ann, "await service.call('add', 'fourth')"))
	assert.Equal(t, 2, browser.Get[int](ann, "starts"))
	ann.Quiet()
}

// Thousands of calls leave nothing behind in the tab that makes them and in the tab that serves.
func TestCallsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	w, _ := serviceWorld(t, quick)
	tabs := []*browser.Tab{w.member(t, "leaks"), w.member(t, "leaks")}
	const many = "for (let n = 0; n < 1000; n++) await service.call('sum', n, 1); for (let n = 0; n < 10; n++) await Promise.all(Array.from({length: 200}, (_, i) => service.call('sum', i, n))); 1"
	tabs[1].MustEval(many, nil)
	before := make([]int, len(tabs))
	for i, tab := range tabs {
		before[i] = tab.Instances("Object") + tab.Instances("Promise") + tab.Instances("MessagePort") + tab.Instances("BroadcastChannel")
	}
	tabs[1].MustEval(many, nil)
	for i, tab := range tabs {
		after := tab.Instances("Object") + tab.Instances("Promise") + tab.Instances("MessagePort") + tab.Instances("BroadcastChannel")
		assert.Less(t, after-before[i], 300, "3000 calls")
	}
}
