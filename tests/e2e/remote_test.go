package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// member opens a tab of a browser on the server's own pages, with a Holdfast that also locks there.
func (s server) member(t *testing.T, b *browser.Browser, host, name string) *browser.Tab {
	t.Helper()
	tab := b.Open(t, s.URL+"/room.html") // this page itself acquires no lock
	begin(tab, fmt.Sprintf("{host: %q, ownerName: %q, server: {url: location.origin}}", host, name))
	return tab
}

// onServer is the server's answer about the project's lock, for an anonymous client.
const onServer = `await (await fetch('/api/documents/project/lock', {credentials: 'omit'})).json()`

// failed is the form in which a page sees an error of the package.
type failed struct {
	Code, Message string
	Retryable     bool
}

type documentLock struct {
	Locked bool   `json:"is_locked"`
	Mine   bool   `json:"is_my_lock"`
	Name   string `json:"holder_name"`
	Token  int64
}

// Two browsers share only the server.
func TestALockBetweenBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) {
			browsers := profiles(t, 2)
			ann, bob := server.member(t, browsers[0], host, "Ann"), server.member(t, browsers[1], host, "Bob")

			ann.MustEval("lease = await hf.acquireProjectLock(); null", nil)
			assert.Equal(t, "remote", browser.Get[string](ann, "lease.strategy"))
			assert.Equal(t, server.URL+"/api/documents/project", browser.Get[string](ann, "lease.resource"))
			held := browser.Get[documentLock](ann, onServer)
			assert.Equal(t, documentLock{Locked: true, Name: "Ann", Token: browser.Get[int64](ann, "lease.token")}, held)

			denied := browser.Get[failed](bob, "await failure(hf.acquireProjectLock({ifAvailable: true}))")
			assert.Equal(t, "acquire-denied", denied.Code)
			assert.Contains(t, denied.Message, "Ann")

			// The server answers a waiter at once.
			bob.MustEval("result = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { lease = l; return now() }); null", nil)
			bob.WaitFor("count('waiting') > 0", browser.Limit)
			released := browser.Get[float64](ann, "await lease.release(), now()")
			granted := browser.Get[float64](bob, "await result")
			assert.Less(t, granted-released, browser.Prompt, "from the release to the grant")
			assert.Greater(t, browser.Get[int64](bob, "lease.token"), held.Token)
			assert.Equal(t, "Bob", browser.Get[documentLock](ann, onServer).Name)
			bob.MustEval("await lease.release()", nil)
			assert.False(t, browser.Get[documentLock](ann, onServer).Locked)
			ann.Quiet()
			bob.Quiet("status of 409")
		})
	}
}

// Two browsers give the server one secret, as also happens if a cookie is copied. The page that waits does not take the lock of the other.
func TestBrowsersWithOneSecret(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tabs := make([]*browser.Tab, 2)
	for i, b := range profiles(t, 2) {
		tabs[i] = server.member(t, b, "worker", "Ann")
		tabs[i].MustEval("await hf.close(); await start({server: {url: location.origin, token: () => 'one-secret'}}); null", nil)
	}
	first, second := tabs[0], tabs[1]
	first.MustEval("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 200}); null", nil)
	denied := browser.Get[failed](second, "await failure(hf.acquireProjectLock({ifAvailable: true}))")
	assert.Equal(t, "acquire-denied", denied.Code)
	second.MustEval("result = hf.acquireProjectLock({backoff: {maxRetries: 0}}); null", nil)
	second.WaitFor("count('waiting') > 0", browser.Limit)
	first.MustEval("const before = count('renewed'); null", nil)
	first.WaitFor("count('renewed') > before + 3", browser.Limit)
	assert.False(t, browser.Get[bool](first, "lease.signal.aborted"))
	first.MustEval("await lease.release()", nil)
	second.MustEval("await (await result).release()", nil)
}

// A tab that dies leaves its lock on the server. The next tab of the same browser takes it over at once.
func TestTheNextTabTakesOverOnTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t)
	b := profiles(t, 1)[0]
	first, second := server.member(t, b, "worker", "Ann"), server.member(t, b, "worker", "Ann")
	token := browser.Get[int64](first, "(lease = await hf.acquireProjectLock()).token")
	second.MustEval("result = hf.acquireProjectLock({backoff: {maxRetries: 0}}).then(l => { lease = l; return now() }); null", nil)
	second.WaitFor("count('waiting') > 0", browser.Limit)

	closed := second.Now()
	first.Close()

	assert.Less(t, browser.Get[float64](second, "await result")-closed, browser.Prompt)
	assert.Greater(t, browser.Get[int64](second, "lease.token"), token)
	assert.True(t, browser.Get[documentLock](second, "await (await fetch('/api/documents/project/lock')).json()").Mine)
}

// This is scenario 3 of the document locks, in three seconds instead of thirty: after a disconnection longer than the
// TTL, the holder is read-only and another client has the lock.
func TestCutOffFromTheServer(t *testing.T) {
	t.Parallel()
	server := serve(t, "--lock-ttl", "3s")
	browsers := profiles(t, 2)
	ann, bob := server.member(t, browsers[0], "worker", "Ann"), server.member(t, browsers[1], "worker", "Bob")
	ann.MustEval("lease = await hf.acquireProjectLock({ttlMs: 3000, heartbeatIntervalMs: 500, backoff: {initialDelayMs: 200}}); null", nil)

	address := server.Address()
	server.Stop()
	ann.WaitFor("count('readonly-entered') === 1", browser.Limit)
	server.Start(address)

	assert.Equal(t, "lease-stale", browser.Get[string](ann, "lease.signal.reason.code"))
	assert.Contains(t, browser.Get[[]string](ann, "events.filter(e => e.type === 'lock:error').map(e => e.error.code)"), "renew-failed")
	bob.MustEval("lease = await hf.acquireProjectLock({ttlMs: 3000, heartbeatIntervalMs: 500, backoff: {maxRetries: 0}}); null", nil)
	assert.Equal(t, "Bob", browser.Get[documentLock](bob, onServer).Name)
}

// While the server is unreachable, acquiring reports that, and continues when the server comes back.
func TestAcquireContinuesWhenServerComesBack(t *testing.T) {
	t.Parallel()
	server := serve(t)
	b := profiles(t, 1)[0]
	tab := server.member(t, b, "worker", "Ann")
	address := server.Address()
	server.Stop()
	away := browser.Get[failed](tab, "await failure(hf.acquireProjectLock({ifAvailable: true}))")
	require.Equal(t, "acquire-timeout", away.Code)
	assert.True(t, away.Retryable)
	assert.Contains(t, away.Message, "no answer of the server")

	tab.MustEval("result = hf.acquireProjectLock({backoff: {initialDelayMs: 100, maxDelayMs: 300, maxRetries: 0}}); null", nil)
	tab.WaitFor("count('waiting') > 1", browser.Limit)
	server.Start(address)
	assert.Equal(t, "remote", browser.Get[string](tab, "(lease = await result).strategy"))
}

// Two browsers edit one document in turn. Each begins with the other's saved text.
func TestEditorsInTwoBrowsers(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	const editor = `{
		globalThis.text = ''
		globalThis.got = []
		globalThis.saver = await hf.initAutoSave(() => text, {debounceMs: 50})
		saver.addEventListener('autosave:editable', ({detail}) => { if (detail.content) got.push(text = new TextDecoder().decode(detail.content)) })
	}`
	ann, bob := server.member(t, browsers[0], "worker", "Ann"), server.member(t, browsers[1], "page", "Bob")
	ann.MustEval(editor, nil)
	bob.MustEval(editor, nil)
	assert.False(t, browser.Get[bool](ann, "saver.readOnly"))
	assert.True(t, browser.Get[bool](bob, "saver.readOnly"))

	ann.MustEval("text = 'Grüße von Ann'; saver.markDirty(); await saver.flushNow()", nil)
	saved := browser.Get[string](bob, "await (await fetch('/api/documents/project/content')).text()")
	assert.Equal(t, "Grüße von Ann", saved)
	ann.MustEval("text += ', zuletzt'; saver.markDirty(); await saver.dispose()", nil)

	bob.WaitFor("!saver.readOnly && got.length === 1", browser.Limit)
	assert.Equal(t, "Grüße von Ann, zuletzt", browser.Get[string](bob, "text"))
	bob.MustEval("text += ', und Bob'; saver.markDirty(); await saver.flushNow()", nil)
	assert.Equal(t, "Grüße von Ann, zuletzt, und Bob",
		browser.Get[string](ann, "await (await fetch('/api/documents/project/content')).text()"))
	assert.Equal(t, []bool{true, false}, browser.Get[[]bool](bob,
		"(await saver.history()).map(g => g.current).concat(false).slice(0, 2)"))
	assert.Equal(t, "Grüße von Ann, zuletzt, und Bob",
		browser.Get[string](bob, "new TextDecoder().decode(await saver.read('current'))"))
}

// machine opens the demo, shared between machines, under a name.
func (s server) machine(t *testing.T, b *browser.Browser, name string) *browser.Tab {
	t.Helper()
	tab := b.Open(t, s.URL+"/?machines")
	tab.MustEval(`globalThis.$ = id => document.getElementById(id)
		globalThis.here = () => $('company').hidden ? '' : [...$('here').children].map(li => li.textContent).sort().join('|')
		$('name').value = '`+name+`'; $('name').dispatchEvent(new Event('change', {bubbles: true}))`, nil)
	// The page may still edit under its first name. It lists its new name once it has opened again.
	tab.WaitFor("['holding', 'held', 'free'].includes(document.body.dataset.kind) && [...$('tabs').querySelectorAll('.name')].some(e => e.firstChild.textContent.trim() === '"+name+"')", browser.Limit)
	return tab
}

// The page shows the users that have the project open on other machines, their arrivals and departures, and shows
// them again after the server was unreachable.
func TestPresenceOfOtherPages(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann := server.machine(t, browsers[0], "Ann")
	ann.WaitFor("here() === 'Ann you' && $('company-title').textContent === 'Here now (1)'", browser.Limit)
	bob := server.machine(t, browsers[1], "Bob")
	bob.WaitFor("here() === 'Ann|Bob you'", browser.Limit)
	ann.WaitFor("here() === 'Ann you|Bob' && $('company-news').textContent.endsWith(' is here.')", browser.Limit)
	accessible(t, ann, "the editor with company")

	bob.MustEval("$('name').value = 'W'.repeat(40); $('name').dispatchEvent(new Event('change', {bubbles: true}))", nil)
	ann.WaitFor("here() === 'Ann you|' + 'W'.repeat(24)", browser.Limit)
	ann.Resize(360, 740)
	assert.LessOrEqual(t, browser.Get[int](ann, "document.documentElement.scrollWidth - innerWidth"), 0, "on a phone")
	screenshots(t, map[string]*browser.Tab{"editor-company": ann})

	address := server.Address()
	server.Stop()
	ann.WaitFor("here() === ''", browser.Limit)
	server.Start(address)
	ann.WaitFor("here() === 'Ann you|' + 'W'.repeat(24)", browser.Limit)

	bob.Close()
	ann.WaitFor("here() === 'Ann you' && $('company-news').textContent === 'W'.repeat(24) + ' has left.'", browser.Limit)
}

// A user changes the name before the page's first request is answered. The others see the latest name.
func TestOthersSeeTheNameThatChangedWhileThePageLoaded(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := profiles(t, 1)[0].Open(t, server.URL+"/room.html")
	tab.Before(`const { send } = WebSocket.prototype
		WebSocket.prototype.send = function (message) {
			send.call(this, message)
			if (!message.includes('enterTheRoom')) return
			WebSocket.prototype.send = send
			document.getElementById('name').value = 'Ann'
			document.getElementById('name').dispatchEvent(new Event('change', {bubbles: true}))
		}`)
	tab.Navigate(server.URL + "/?machines")
	tab.WaitFor("document.getElementById('here').textContent === 'Ann you'", browser.Limit)
}

// The demo runs on two machines: both show the writer, saved text appears on the other machine, and the turn is
// handed over on release.
func TestTheEditorBetweenMachines(t *testing.T) {
	t.Parallel()
	server := serve(t)
	browsers := profiles(t, 2)
	ann := server.machine(t, browsers[0], "Ann")
	ann.WaitFor("document.body.dataset.kind === 'holding' && $('share-state').textContent.startsWith('Ann writes.')", browser.Limit)
	bob := server.machine(t, browsers[1], "Bob")
	bob.WaitFor("$('answer').textContent === 'Ann writes.'", browser.Limit)
	assert.True(t, browser.Get[bool](bob, "$('text').readOnly && $('share-box').checked"))
	bob.WaitFor("$('tabs').textContent.startsWith('Ann, elsewhere')", browser.Limit)

	ann.MustEval("$('text').value = 'From one machine'; $('text').dispatchEvent(new Event('input', {bubbles: true}))", nil)
	bob.WaitFor("$('text').value === 'From one machine'", browser.Limit)

	ann.MustEval("$('text').value += ' to the other'; $('text').dispatchEvent(new Event('input', {bubbles: true})); $('leave').click()", nil)
	bob.WaitFor("$('answer').textContent === 'You write.' && $('text').value === 'From one machine to the other'", browser.Limit)
	ann.WaitFor("$('answer').textContent === 'Bob writes.'", browser.Limit)
	accessible(t, bob, "the editor between machines")
}

// A page of another origin that the server lists can use the server like its own pages. A page of an unlisted origin
// cannot.
func TestAPageOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	var server server
	bundle := pages(t, siteDir)
	home := browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bundle.ServeHTTP(&headerChange{w, func(h http.Header) {
			h.Set("Content-Security-Policy", strings.Replace(h.Get("Content-Security-Policy"), "connect-src 'self'", "connect-src 'self' "+server.URL, 1))
		}}, r)
	}))
	server = serve(t, "--origin", strings.TrimSuffix(home.URL("/"), "/"))
	browsers := profiles(t, 2)
	tab := browsers[0].Open(t, home.URL("/blank"))
	begin(tab, fmt.Sprintf("{ownerName: 'Ann', server: {url: %q}}", server.URL))
	tab.MustEval("lease = await hf.acquireProjectLock(); null", nil)
	assert.Equal(t, "remote", browser.Get[string](tab, "lease.strategy"))
	own := server.member(t, browsers[1], "worker", "Bob")
	assert.Equal(t, "Ann", browser.Get[documentLock](own, onServer).Name)
	tab.MustEval(`await lease.release()
		const saver = await hf.initAutoSave(() => 'from elsewhere', {debounceMs: 50})
		saver.markDirty(); await saver.flushNow(); await saver.dispose(); null`, nil)
	assert.Equal(t, "from elsewhere", browser.Get[string](own, "await (await fetch('/api/documents/project/content')).text()"))

	unlisted := browsers[1].Open(t, home.OtherURL("/blank"))
	asked := fmt.Sprintf("await fetch('%s/api/documents/project/lock').then(() => 'read', () => 'refused')", server.URL)
	assert.Equal(t, "refused", browser.Get[string](unlisted, asked))
}

// headerChange changes the headers of a response before it is sent.
type headerChange struct {
	http.ResponseWriter
	change func(http.Header)
}

func (c *headerChange) WriteHeader(status int) {
	c.change(c.Header())
	c.ResponseWriter.WriteHeader(status)
}

func (c *headerChange) Write(text []byte) (int, error) {
	c.change(c.Header())
	return c.ResponseWriter.Write(text)
}

// A browser without files keeps no drafts, and the server saves nevertheless. The text at the call of dispose() is
// saved, although the page empties its editor in the same task.
func TestDisposeWithoutFilesSavesTheTextOfTheCall(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := browser.Start(t, quick).Open(t, server.URL+"/room.html")
	tab.MustEval("IDBFactory.prototype.open = StorageManager.prototype.getDirectory = () => { throw new DOMException('planted', 'SecurityError') }; 1", nil)
	begin(tab, "{host: 'page', server: {url: location.origin}}")
	tab.MustEval(`
		globalThis.text = 'first'
		globalThis.saver = await hf.initAutoSave(() => text, {debounceMs: 60000, idleMs: 60000})
		saver.markDirty()
		const ended = saver.dispose()
		text = ''
		await ended`, nil)
	assert.Equal(t, "first", browser.Get[string](tab, "await (await fetch('/api/documents/project/content')).text()"))
}
