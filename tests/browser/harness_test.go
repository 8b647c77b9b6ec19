package browser_test

import (
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

func TestBrowserLeavesNothing(t *testing.T) {
	temporary, err := os.MkdirTemp("", "hf-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.Remove(temporary)) })
	t.Setenv("TMPDIR", temporary)
	t.Run("run", func(t *testing.T) {
		fresh := browser.Options{Flags: []string{"lang=fr"}} // no earlier test had such a browser
		l := openLab(t, fresh)
		l.tab(t, "a").Suspend() // a stopped renderer must not outlive its browser
		assert.NotEmpty(t, commands(t, temporary), "the profile is named on the command line")
	})
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left, "profile")
	assert.Eventually(t, func() bool { return len(commands(t, temporary)) == 0 }, 5*time.Second, 10*time.Millisecond,
		"processes")
}

// commands returns the command lines that name a path, on systems that have /proc.
func commands(t *testing.T, path string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skip("this system has no /proc")
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), path) {
			found = append(found, string(line))
		}
	}
	return found
}

func TestEval(t *testing.T) {
	t.Parallel()
	tab := openLab(t, browser.Options{}).tab(t, "a")
	assert.Equal(t, 5, browser.Get[int](tab, "Promise.resolve(5)"))
	assert.Equal(t, map[string]int{"a": 3}, browser.Get[map[string]int](tab, "const three = await 3; ({a: three})"))
	assert.Equal(t, 3, browser.Get[int](tab, "three"), "declared by the script before")
	assert.Nil(t, browser.Get[any](tab, "undefined"))

	var failure *browser.JSError
	require.ErrorAs(t, tab.Eval("function f() { throw new TypeError('boo') }\nf()", nil), &failure)
	assert.Equal(t, "TypeError", failure.Name)
	assert.Equal(t, "boo", failure.Message)
	assert.Contains(t, failure.Stack, "at f (")
	require.ErrorAs(t, tab.Eval("Promise.reject(Object.assign(new Error('no'), {code: 'denied'}))", nil), &failure)
	assert.Equal(t, "denied", failure.Code)

	tab.MustEval("let ready; setTimeout(() => { ready = 1 }, 50); 1", nil)
	tab.WaitFor("ready", browser.Limit)
	assert.ErrorContains(t, tab.Wait("ready - 1", 5*time.Second), "the last value was 0")
	tab.Quiet()
}

func TestConsoleAndWorkers(t *testing.T) {
	t.Parallel()
	l := openLab(t, browser.Options{})
	tab := l.tab(t, "a")
	assert.Equal(t, 1, tab.Workers())
	tab.MustEval(`console.log("hello", 1, {}); setTimeout(() => { throw new RangeError("late") }); 1`, nil)
	tab.MustEval(`const other = new Worker(URL.createObjectURL(new Blob(["console.error('from the worker')"]))); 1`, nil)
	require.Eventually(t, func() bool { return len(tab.Console()) == 3 && tab.Workers() == 2 },
		browser.Limit, 5*time.Millisecond)
	var lines []string
	for _, message := range tab.Console() {
		line, _, _ := strings.Cut(message.String(), "\n")
		lines = append(lines, line)
	}
	assert.ElementsMatch(t, []string{"page log: hello 1 Object", "page exception: RangeError: late",
		"worker error: from the worker"}, lines)
	tab.Quiet("late", "from the worker")

	tab.MustEval("other.terminate(); worker.terminate()", nil)
	require.Eventually(t, func() bool { return tab.Workers() == 0 }, browser.Limit, 5*time.Millisecond)
	tab.MustEval("employ()", nil)
	tab.Reload()
	require.Eventually(t, func() bool { return tab.Workers() == 0 }, browser.Limit, 5*time.Millisecond)
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	srv := browser.Serve(t, browser.Pages{
		"/":       {Body: "<!doctype html><title>page</title>"},
		"/strict": {Header: map[string]string{"Content-Security-Policy": "script-src 'self'"}},
	})
	tab := b.Open(t, srv.URL("/"))
	const facts = "[isSecureContext, 'locks' in navigator]"
	assert.Equal(t, []bool{true, true}, browser.Get[[]bool](tab, facts))
	tab.Navigate(srv.InsecureURL("/"))
	assert.Equal(t, []bool{false, false}, browser.Get[[]bool](tab, facts))
	tab.Navigate(srv.OtherURL("/"))
	assert.Equal(t, []bool{true, true}, browser.Get[[]bool](tab, facts))
	tab.Navigate(srv.URL("/strict"))
	var failure *browser.JSError
	require.ErrorAs(t, tab.Eval("eval('1')", nil), &failure, "the policy holds for scripts of the harness")
	assert.Equal(t, "EvalError", failure.Name)
}

func TestTabs(t *testing.T) {
	t.Parallel()
	l := openLab(t, browser.Options{})
	a, b := l.tab(t, "a"), l.tab(t, "b")
	const state = "document.visibilityState"
	assert.Equal(t, []*browser.Tab{a, b}, l.Tabs())
	assert.Equal(t, "visible", browser.Get[string](b, state))
	a.WaitFor("document.hidden", browser.Limit)
	a.Show()
	b.WaitFor("document.hidden", browser.Limit)
	a.Hide()
	assert.Equal(t, "hidden", browser.Get[string](b, state))

	before, err := a.Renderer()
	require.NoError(t, err)
	other, err := b.Renderer()
	require.NoError(t, err)
	assert.NotEqual(t, before, other)
	a.MustEval("localStorage.shared = 'yes'", nil)
	b.WaitFor("localStorage.shared === 'yes'", browser.Limit)

	for _, tab := range []*browser.Tab{a, b} {
		early, now, late := clock(), tab.Now(), clock()
		assert.InDelta(t, (early+late)/2, now, 5+(late-early)/2, "clock of the tab")
	}
	a.Suspend()
	_, err = b.Renderer()
	assert.NoError(t, err, "known before the other tab was suspended")
	a.Continue()
	a.Crash()
	assert.ErrorContains(t, a.Eval("1", nil), "crashed")
	assert.Eventually(t, func() bool { return slices.Equal(a.Crashes(), []string{"killed 9"}) }, browser.Limit, time.Millisecond)
	a.Reload()
	assert.Equal(t, 1, browser.Get[int](a, "1"))
	a.Close()
	assert.ErrorContains(t, a.Eval("1", nil), "closed")
	assert.Equal(t, []*browser.Tab{b}, l.Tabs())
}

// A spare tab releases everything, and is like new for the next Open of its address.
func TestSpareTabIsLikeNew(t *testing.T) {
	t.Parallel()
	l := openLab(t, browser.Options{Shell: true})
	observer, tab := l.tab(t, "observer"), l.tab(t, "tab")
	observer.MustEval("globalThis.got = 0; 1", nil)
	tab.MustEval("globalThis.mark = 1; await take('x'); await ask('take', 'y'); console.error('of the page'); 1", nil)
	tab.WorkerEval("console.error('of the worker')", nil)
	assert.Len(t, tab.Console(), 2)
	observer.MustEval("Promise.all([take('x'), take('y')]).then(() => { got = 1 }); 1", nil)
	queued(t, observer, 2)
	renderer, err := tab.Renderer()
	require.NoError(t, err)

	tab.Spare()
	tab.Spare()
	observer.WaitFor("got", browser.Limit)
	other := l.Open(t, l.server.URL("/blank"))
	again := l.tab(t, "tab")
	assert.Same(t, tab, again)
	assert.Equal(t, "undefined", browser.Get[string](again, "typeof mark"))
	assert.Equal(t, "visible", browser.Get[string](again, "document.visibilityState"))
	assert.Equal(t, 1, again.Workers())
	assert.Empty(t, again.Console())
	same, err := again.Renderer()
	require.NoError(t, err)
	assert.Equal(t, renderer, same)
	assert.NotSame(t, tab, l.tab(t, "tab"), "a tab is reused once")

	other.Close()
	other.Spare()
	assert.NotSame(t, other, l.Open(t, l.server.URL("/blank")))
	again.Crash()
	again.Spare()
	assert.Equal(t, 2, browser.Get[int](l.tab(t, "tab"), "1 + 1"), "revived")
}

func TestScreenshot(t *testing.T) {
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	srv := browser.Serve(t, browser.Pages{"/": {Body: `<!doctype html><title>page</title>
<style>body { background: #fff } @media (prefers-color-scheme: dark) { body { background: #000 } }</style>`}})
	tab := b.Open(t, srv.URL("/"))
	for _, dark := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "new", "shot.png")
		tab.Screenshot(path, 390, 844, dark)
		file, err := os.Open(path)
		require.NoError(t, err)
		image, err := png.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		assert.Equal(t, 390, image.Bounds().Dx())
		assert.Equal(t, 844, image.Bounds().Dy())
		red, _, _, _ := image.At(5, 5).RGBA()
		assert.Equal(t, dark, red == 0)
	}
}

// WorkerEval runs a script in the worker of a page, in the worker's realm.
func TestWorkerEval(t *testing.T) {
	l := openLab(t, browser.Options{})
	tab := l.tab(t, "employer")
	var name string
	tab.WorkerEval("globalThis.mark = 7; who", &name)
	assert.Equal(t, "employer-worker", name)
	var mark int
	tab.WorkerEval("mark", &mark)
	assert.Equal(t, 7, mark)
	assert.Equal(t, "undefined", browser.Get[string](tab, "typeof mark"))
}

func TestEachWorkerEval(t *testing.T) {
	tab := openLab(t, browser.Options{}).tab(t, "employer")
	tab.MustEval("globalThis.first = worker; await employ(); globalThis.heard = []; [first, worker].forEach(w => { w.onmessage = e => heard.push(e.data) }); null", nil)
	tab.EachWorkerEval("postMessage('hello')")
	tab.WaitFor("heard.join() === 'hello,hello'", browser.Limit)
	tab.MustEval("setTimeout(() => { first.terminate(); worker.terminate() }, 100); null", nil)
	tab.EachWorkerEval("await new Promise(() => {})") // workers that end need not answer
}
