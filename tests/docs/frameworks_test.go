package docs

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// field is the input of the component.
const field = "document.querySelector('#app textarea')"

// TestFrameworks types into the components of docs/frameworks.md. The published compilers and packages of the
// frameworks build and run them. React runs in development mode, under StrictMode.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	chromium := browser.Start(t, browser.Options{Shell: true})
	for app, parts := range map[string][]string{
		"react-app.jsx": {"Notes", "Uncontrolled", "Emptied"},
		"vue-app.js":    {"Notes"},
		"svelte-app.js": {"Notes", "Field"},
	} {
		server := browser.Serve(t, shop(t, app))
		t.Run(app+"/later", func(t *testing.T) { testLaterHoldfast(t, chromium, server, app) })
		for _, part := range parts {
			t.Run(app+"/"+part, func(t *testing.T) { testPart(t, chromium, server, part) })
		}
		if app == "svelte-app.js" {
			t.Run(app+"/path", func(t *testing.T) { testPath(t, chromium, server, "Turning") })
			t.Run("left", func(t *testing.T) { testLeft(t, chromium, server) })
			t.Run("hydrated", func(t *testing.T) { testHydrated(t, chromium, server) })
			t.Run("restored", func(t *testing.T) { testRestored(t, chromium, server) })
		}
		if app == "vue-app.js" {
			t.Run(app+"/path", func(t *testing.T) { testPath(t, chromium, server, "Turning") })
			t.Run("slow/editable", func(t *testing.T) { testSlowLoad(t, chromium, server) })
			t.Run("slow/earlier", func(t *testing.T) { testSlowEarlierLoad(t, chromium, server) })
			t.Run("broken", func(t *testing.T) { testBrokenLoad(t, chromium, server) })
			t.Run("swapped", func(t *testing.T) { testSwapped(t, chromium, server) })
			t.Run("slow/read", func(t *testing.T) { testSlowRead(t, chromium, server) })
		}
		if app == "react-app.jsx" {
			t.Run("route", func(t *testing.T) { testRoute(t, chromium, server) })
			t.Run("state", func(t *testing.T) { testBoard(t, chromium, server) })
			for _, part := range []string{"Pages", "Turning"} {
				t.Run("path/"+part, func(t *testing.T) { testPath(t, chromium, server, part) })
			}
			t.Run("late", func(t *testing.T) { testLateContent(t, chromium, server) })
			t.Run("waiting", func(t *testing.T) { testWaiting(t, chromium, server) })
			t.Run("renamed", func(t *testing.T) { testRenamed(t, chromium, server) })
			t.Run("functions", func(t *testing.T) { testFunctions(t, chromium, server) })
			t.Run("refreshed", func(t *testing.T) { testRefreshed(t, chromium, server) })
			t.Run("suspended", func(t *testing.T) { testSuspended(t, chromium, server) })
		}
	}
}

// One tab edits, and its component is removed while text is unsaved. The next component, in this or another tab, has
// all of the text.
func testPart(t *testing.T, chromium *browser.Browser, server *browser.Server, part string) {
	first := chromium.Open(t, server.URL("/app"))
	first.MustEval("show('"+part+"')", nil)
	edits(first)
	first.Type("typed, ")
	first.Type("and gone at once")
	first.MustEval("show()", nil)
	first.WaitFor("document.querySelector('#app textarea') === null", browser.Limit)
	first.MustEval("show('"+part+"')", nil)
	first.WaitFor(field+".value === 'typed, and gone at once' && !"+field+".readOnly", browser.Limit)
	assert.Equal(t, 1, first.Workers())

	second := chromium.Open(t, server.URL("/app"))
	second.MustEval("show('"+part+"')", nil)
	second.WaitFor(field+".readOnly && "+field+".value === 'typed, and gone at once'", browser.Limit)
	first.MustEval("show()", nil)
	edits(second)
	second.Type("!")
	second.WaitFor(field+".value.includes('!')", browser.Limit)
	second.MustEval("show()", nil)
	first.MustEval("show('"+part+"')", nil)
	first.WaitFor(field+".value.length === 'typed, and gone at once!'.length && !"+field+".readOnly", browser.Limit)
	for _, tab := range []*browser.Tab{first, second} {
		tab.MustEval("show()", nil)
		assert.Eventually(t, func() bool { return tab.Workers() == 0 }, browser.Limit, 5*time.Millisecond, "the runtime is left")
		quiet(tab)
		tab.Close()
	}
}

// Another component replaces the first one in one commit, with the same document.
func testRoute(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "route.localhost", 1))
	tab.MustEval("show('Notes')", nil)
	edits(tab)
	tab.Type("on the way")
	for _, part := range []string{"Other", "Notes", "Other"} {
		tab.MustEval("show('"+part+"')", nil)
		tab.WaitFor(field+".value === 'on the way' && !"+field+".readOnly && "+field+".ariaLabel === "+map[string]string{"Other": "'Other'", "Notes": "null"}[part], browser.Limit)
	}
	assert.Equal(t, 1, tab.Workers())
	quiet(tab)
	tab.Close()
}

// The path of a component changes right after the user has typed. Each document gets its own text, and nothing of the other one.
func testPath(t *testing.T, chromium *browser.Browser, server *browser.Server, part string) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", strings.ToLower(part)+".localhost", 1))
	shows := func(page, text string) {
		t.Helper()
		tab.WaitFor(fmt.Sprintf("%s?.ariaLabel === %q && !%[1]s.readOnly && %[1]s.value === %[3]q", field, page, text), browser.Limit)
	}
	tab.MustEval("show('"+part+"')", nil)
	edits(tab)
	tab.Type("the first")
	tab.MustEval("turn('two')", nil)
	shows("two", "")
	edits(tab)
	tab.Type("the second")
	tab.MustEval("turn('one')", nil)
	shows("one", "the first")
	tab.MustEval("turn('two')", nil)
	shows("two", "the second")
	tab.MustEval("show()", nil)
	tab.WaitFor(field+" === null", browser.Limit)
	tab.MustEval("show('"+part+"')", nil) // with nothing in memory
	shows("one", "the first")
	tab.MustEval("turn('two')", nil)
	shows("two", "the second")
	quiet(tab)
	tab.Close()
}

// A component that follows a document of another tab gets another path. A content that is still being read is not shown then.
func testLateContent(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	url := strings.Replace(server.URL("/app"), "localhost", "late.localhost", 1)
	editor, tab := chromium.Open(t, url), chromium.Open(t, url)
	editor.MustEval("show('Turned')", nil)
	edits(editor)
	editor.Type("the first")
	editor.MustEval("await autosave.flushNow(); null", nil)

	tab.MustEval("show('Turned')", nil)
	tab.WaitFor(field+"?.value === 'the first'", browser.Limit)
	tab.MustEval("turn('two')", nil)
	edits(tab)
	tab.MustEval(`
		const all = Object.getPrototypeOf(autosave), {read} = all
		all.read = async function (id) {
			const content = await read.call(this, id)
			globalThis.reading = true
			await new Promise(done => { globalThis.answer = done })
			globalThis.answered = true
			return content
		}
		turn('one')`, nil)
	tab.WaitFor("globalThis.reading", browser.Limit)
	tab.MustEval("turn('two')", nil)
	tab.WaitFor(field+".ariaLabel === 'two' && !"+field+".readOnly", browser.Limit)
	tab.MustEval(field+".value = ''; "+field+".focus()", nil)
	tab.Type("the second")
	tab.MustEval("answer(); null", nil)
	tab.WaitFor("globalThis.answered", browser.Limit)
	assert.Equal(t, "the second", browser.Get[string](tab, field+".value"))
	unmountAll(editor, tab)
}

func testBoard(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "board.localhost", 1))
	tab.MustEval("show('Board')", nil)
	tab.WaitFor("document.querySelector('#app button').textContent === 'Add'", browser.Limit)
	tab.MustEval("for (let n = 0; n < 3; n++) { document.querySelector('#app button').click(); await null } show(); null", nil)
	tab.WaitFor("document.querySelector('#app button') === null", browser.Limit)
	tab.MustEval("show('Board')", nil)
	tab.WaitFor("[...document.querySelectorAll('#app li')].map(li => li.textContent).join() === 'Card 1,Card 2,Card 3'", browser.Limit)
	quiet(tab)
	tab.Close()
}

// A component that is hidden while its neighbour suspends keeps its text, even if it is removed meanwhile.
func testSuspended(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "suspended.localhost", 1))
	tab.MustEval("show('Suspending')", nil)
	edits(tab)
	tab.Type("hidden")
	tab.MustEval("suspend()", nil)
	tab.WaitFor("!!document.querySelector('#fallback')", browser.Limit)
	tab.MustEval("resume()", nil)
	tab.WaitFor("!document.querySelector('#fallback') && "+field+".value === 'hidden' && !"+field+".readOnly", browser.Limit)
	tab.MustEval(field+".focus()", nil)
	tab.Type(" again")
	tab.MustEval("suspend()", nil)
	tab.WaitFor("!!document.querySelector('#fallback')", browser.Limit)
	tab.MustEval("show()", nil)
	tab.WaitFor("!document.querySelector('#app textarea')", browser.Limit)
	tab.MustEval("show('Uncontrolled')", nil)
	tab.WaitFor(field+"?.value.length === 'hidden again'.length && !"+field+".readOnly", browser.Limit)
	quiet(tab)
	tab.Close()
}

// A developer saves the file of a component while its text is unsaved. The next version of the component has the text, and edits.
func testRefreshed(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "refreshed.localhost", 1))
	tab.MustEval("show('Refreshed')", nil)
	edits(tab)
	tab.Type("typed")
	tab.MustEval("refresh()", nil)
	tab.WaitFor(field+".dataset.version === 'second' && "+field+".value === 'typed' && !"+field+".readOnly", browser.Limit)
	edits(tab)
	tab.Type(" again")
	assert.Equal(t, 1, tab.Workers())
	tab.MustEval("show()", nil)
	tab.WaitFor("!document.querySelector('#app textarea')", browser.Limit)
	tab.MustEval("show('Refreshed')", nil)
	tab.WaitFor(field+"?.value === 'typed again' && !"+field+".readOnly", browser.Limit)
	quiet(tab)
	tab.Close()
}

// The options of a component's Holdfast change, and the user types before the component has the next Holdfast. The text is saved.
func testRenamed(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "renamed.localhost", 1))
	tab.MustEval("show('Renamed')", nil)
	edits(tab)
	tab.Type("typed")
	tab.MustEval("await autosave.flushNow(); globalThis.former = holdfast; rename('Ben')", nil)
	tab.WaitFor(field+".ariaLabel === 'Ben' && holdfast !== former && !"+field+".readOnly", browser.Limit)
	assert.Equal(t, "typed!", browser.Get[string](tab, field+".value"))
	tab.MustEval("const {code} = await former.inspect().catch(error => error)", nil)
	assert.Equal(t, "aborted", browser.Get[string](tab, "code"), "the former one is closed")
	tab.MustEval("show()", nil)
	tab.WaitFor("!"+field, browser.Limit)
	assert.Eventually(t, func() bool { return tab.Workers() == 0 }, browser.Limit, 5*time.Millisecond, "the runtime is left")
	quiet(tab)
	tab.Close()
}

// The functions in the options of the hooks are those of the last commit.
func testFunctions(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "functions.localhost", 1))
	tab.MustEval("show('Signed')", nil)
	tab.WaitFor("tokens.useHoldfast === ''", browser.Limit)
	tab.WaitFor("tokens.useEditor === ''", browser.Limit)
	tab.MustEval("sign('Ann')", nil)
	tab.WaitFor("tokens.useHoldfast === 'Ann' && tokens.useEditor === 'Ann'", browser.Limit)
	for _, path := range []string{"text", "other"} {
		tab.MustEval("told.length = 0; const options = given.findLast(({path}) => path[0] === '"+path+"'); options.lock.onReadonly(); told.push(options.merge())", nil)
		assert.Equal(t, []string{"Ann", "Ann"}, browser.Get[[]string](tab, "told"), path)
	}
	tab.Close()
}

// A store goes on for its other subscriber if one leaves it twice.
func testLeft(t *testing.T, chromium *browser.Browser, server *browser.Server) {
	tab := chromium.Open(t, strings.Replace(server.URL("/app"), "localhost", "left.localhost", 1))
	tab.MustEval("show('Left')", nil)
	tab.WaitFor("!view.readOnly", browser.Limit)
	tab.MustEval("show()", nil)
	tab.Close()
}

// edits waits until the user may type, and clicks.
func edits(tab *browser.Tab) {
	tab.WaitFor("!!"+field+" && !"+field+".readOnly", browser.Limit)
	tab.MustEval(field+".focus(); "+field+".setSelectionRange(1e6, 1e6)", nil)
}

// quiet ignores React's messages for developers.
func quiet(tab *browser.Tab) { tab.Quiet("React DevTools", "development build") }

// shop serves a page with an app that shows the components of docs/frameworks.md, and the site's files.
func shop(t *testing.T, app string) http.Handler {
	t.Helper()
	dir := t.TempDir()
	for _, b := range slices.Concat(blocksIn(t, "jsx"), blocksIn(t, "vue"), blocksIn(t, "svelte")) {
		name := regexp.MustCompile(`\w+\.(jsx|vue|svelte)`).FindString(b.text)
		require.NotEmpty(t, name, "%s does not begin with its name", b.name())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o644))
	}
	for _, name := range []string{app, "refresh.js"} {
		source, err := os.ReadFile(filepath.Join("frameworks", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), source, 0o644))
	}
	script := assemble(t, filepath.Join(dir, app))

	files, err := static.Handler(os.DirFS("../../web/site"))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", files)
	mux.HandleFunc("/app.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(script)
	})
	for path, rendered := range map[string]string{"/app": "", "/rendered": "<textarea></textarea>"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			static.SecurityHeaders(w.Header())
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><title>App</title><link rel=icon href='data:,'><div id=app>%s</div><script type=module src=app.js></script>", rendered)
		})
	}
	return mux
}

// assemble bundles an app with its framework, and leaves the import of holdfast.js as an import.
func assemble(t *testing.T, app string) []byte {
	t.Helper()
	modules, err := filepath.Abs("frameworks/node_modules")
	require.NoError(t, err)
	require.DirExists(t, modules, "the frameworks are not installed; run make test-docs")
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{app},
		Bundle:      true,
		Format:      api.FormatESModule,
		Platform:    api.PlatformBrowser,
		Target:      api.ES2022,
		JSX:         api.JSXAutomatic,
		NodePaths:   []string{modules},
		Define: map[string]string{"process.env.NODE_ENV": `"development"`,
			"__VUE_OPTIONS_API__": "false", "__VUE_PROD_DEVTOOLS__": "false", "__VUE_PROD_HYDRATION_MISMATCH_DETAILS__": "false"},
		Plugins:  []api.Plugin{entriesOf(t), components},
		LogLevel: api.LogLevelSilent,
	})
	require.Empty(t, api.FormatMessages(result.Errors, api.FormatMessagesOptions{}))
	require.Len(t, result.OutputFiles, 1)
	return result.OutputFiles[0].Contents
}

// entriesOf resolves the entries of the package to the build's files.
func entriesOf(t *testing.T) api.Plugin {
	t.Helper()
	dist, err := filepath.Abs("../../dist")
	require.NoError(t, err)
	return api.Plugin{Name: "entries", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^holdfast/`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: filepath.Join(dist, strings.TrimPrefix(args.Path, "holdfast/")+".js")}, nil
		})
		build.OnResolve(api.OnResolveOptions{Filter: `^(holdfast|\./holdfast\.js)$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: "./holdfast.js", External: true}, nil
		})
	}}
}

// components compiles the components of Vue and Svelte.
var components = api.Plugin{Name: "components", Setup: func(build api.PluginBuild) {
	build.OnLoad(api.OnLoadOptions{Filter: `\.(vue|svelte)$`}, func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		out, err := exec.Command("node", "frameworks/compile.mjs", args.Path).Output()
		if err != nil {
			return api.OnLoadResult{}, err
		}
		code := string(out)
		return api.OnLoadResult{Contents: &code, Loader: api.LoaderJS}, nil
	})
}}
