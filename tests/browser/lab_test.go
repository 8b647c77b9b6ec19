package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// The lab is a page, and a worker of the same script, that take raw Web Locks and note what happens to them and
// when. Every note is also sent over a channel, so that an observer tab sees what a tab that cannot be asked does.
const labScript = `
const page = typeof document === 'object'
const who = new URL(location).searchParams.get('who')
const now = () => performance.timeOrigin + performance.now()
const channel = new BroadcastChannel('lab')
const own = [], seen = [], releases = {}
const note = what => { const n = {who, what, at: now()}; own.push(n); channel.postMessage(n) }
channel.onmessage = ({data}) => { seen.push(data) }
// take requests a lock and resolves when it is granted; give releases it.
const take = (name, options = {}) => new Promise((granted, refused) =>
  navigator.locks.request(name, options, () => {
    note('granted ' + name); granted(true)
    return new Promise(done => { releases[name] = done })
  }).then(() => note('released ' + name), e => { note(e.name + ' ' + name); refused(e) })).catch(e => e.name)
const give = name => releases[name]()
const tick = every => { note('tick'); setTimeout(tick, every, every) }
// count says how often somebody was seen to do something after an instant.
const count = (who, what, after) => seen.filter(n => n.who === who && n.what === what && n.at > after).length
const at = (list, who, what) => list.find(n => n.who === who && n.what === what)?.at
const pause = ms => new Promise(done => setTimeout(done, ms))
// employ starts a worker; ask calls a function in it and resolves when that is done.
let worker
const employ = () => { worker = new Worker('/lab.js?who=' + who + '-worker'); return ask('note', 'up') }
const ask = (...call) => new Promise(done => {
  worker.addEventListener('message', e => done(e.data), {once: true}); worker.postMessage(call) })
if (page) {
  for (const type of ['freeze', 'resume', 'visibilitychange']) document.addEventListener(type, () => note(type))
  for (const type of ['pagehide', 'pageshow']) addEventListener(type, e => note(type))
} else {
  const calls = {note, take, give, tick}
  onmessage = async ({data: [name, ...rest]}) => postMessage(await calls[name](...rest))
}`

// labPages serve the lab at /lab?who=name.
var labPages = browser.Pages{
	"/lab":    {Body: "<!doctype html><title>lab</title><p>lab</p><script src=/lab.js></script>"},
	"/lab.js": {Body: labScript},
	"/blank":  {Body: "<!doctype html><title>blank</title>"},
}

// lab is one browser at the lab's pages.
type lab struct {
	*browser.Browser
	server *browser.Server
}

func openLab(t *testing.T, options browser.Options) lab {
	t.Helper()
	return lab{browser.Start(t, options), browser.Serve(t, labPages)}
}

// tab opens a tab of the lab with a name and a worker called name-worker.
func (l lab) tab(t *testing.T, name string) *browser.Tab {
	t.Helper()
	tab := l.Open(t, l.server.URL("/lab?who="+name))
	tab.MustEval("employ()", nil)
	return tab
}

// queued waits until n requests for locks are pending.
func queued(t *testing.T, tab *browser.Tab, n int) {
	t.Helper()
	tab.WaitFor(fmt.Sprintf("(await navigator.locks.query()).pending.length === %d", n), browser.Limit)
}

// clock is Go's clock, comparable with browser.NowJS.
func clock() float64 { return float64(time.Now().UnixMicro()) / 1000 }
