package docs

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

const (
	recipes = "docs/recipes.md"
	editors = "editors/node_modules"
)

// A recipe is one page in docs/recipes.md.
type recipe struct {
	script string                     // the name in the first comment of its block
	policy func(policy string) string // the changes that the editor needs in the site's policy
	focus  string                     // how the script focuses the element that a user clicks before typing
	click  func(tab *browser.Tab)     // how a user begins to type, where the focus is not enough
	text   string                     // the text in the editor
	read   string                     // the same text from the script, also in a hidden tab
	empty  string                     // how the script empties the editor
	remove string                     // how the script removes the editor
	theirs string                     // saved content whose text is "theirs"
	merges bool                       // whether the recipe joins changes in different places
	expose string                     // names of the script that the test needs, too
	report string                     // what the browser reports because of the policy, though nothing fails
}

const nonce = "cmFuZG9tIGVub3VnaA"

// nonceForStyles allows the styles that an editor writes into the page.
func nonceForStyles(policy string) string {
	return strings.Replace(policy, "style-src 'self'", "style-src 'self' 'nonce-"+nonce+"'", 1)
}

var kitchen = []recipe{
	{
		script: "textarea.js",
		policy: func(policy string) string { return policy },
		focus:  "document.querySelector('#text').focus()",
		text:   "document.querySelector('#text').value",
		read:   "text.value",
		empty:  "text.value = ''",
		remove: "text.remove()",
		theirs: "theirs",
	},
	{
		script: "codemirror.js",
		policy: nonceForStyles,
		focus:  "document.querySelector('.cm-content').focus()",
		text:   "[...document.querySelectorAll('.cm-line')].map((line) => line.textContent).join('\\n')",
		read:   "view.state.doc.toString()",
		empty:  "view.dispatch({ changes: { from: 0, to: view.state.doc.length } })",
		remove: "view.destroy()",
		theirs: "theirs",
	},
	{
		script: "monaco.js",
		policy: func(policy string) string {
			return strings.Replace(policy, "style-src 'self'", "style-src 'self' 'unsafe-inline'; font-src 'self'", 1)
		},
		focus:  "document.querySelector('.monaco-editor textarea, .monaco-editor .native-edit-context').focus()",
		text:   "[...document.querySelectorAll('.view-line')].map((line) => line.textContent.replaceAll('\\u00a0', ' ')).join('\\n')",
		read:   "editor.getValue()",
		empty:  "editor.setValue('')",
		remove: "editor.getModel().dispose(); editor.dispose()",
		theirs: "theirs",
	},
	{
		script: "tiptap.js",
		policy: nonceForStyles,
		focus:  "document.querySelector('.tiptap').focus()",
		text:   "document.querySelector('.tiptap').innerText",
		read:   "editor.getText()",
		empty:  "editor.commands.clearContent()",
		remove: "editor.destroy()",
		theirs: `{"type":"doc","content":[{"type":"paragraph","content":[{"type":"text","text":"theirs"}]}]}`,
	},
	{
		script: "lexical.js",
		policy: func(policy string) string { return policy },
		focus:  "document.querySelector('#text').focus()",
		text:   "document.querySelector('#text').innerText",
		read:   "text(editor.getEditorState())",
		empty:  "editor.update(() => $getRoot().clear(), { discrete: true })",
		remove: "editor.setRootElement(null)",
		theirs: `{"root":{"type":"root","version":1,"children":[{"type":"paragraph","version":1,"children":[{"type":"text","version":1,"text":"theirs"}]}]}}`,
	},
	excalidraw,
}

// Each page is opened in two tabs: one edits and saves, the other reads, takes over, and continues where the first
// one stopped.
func TestRecipes(t *testing.T) {
	t.Parallel()
	parts := ingredients(t, recipes)
	chromium := browser.Start(t, browser.Options{Shell: true})
	for _, r := range kitchen {
		t.Run(r.script, func(t *testing.T) { cook(t, chromium, r, parts) })
	}
}

func cook(t *testing.T, chromium *browser.Browser, r recipe, parts map[string]string) {
	server := browser.Serve(t, kitchenOf(t, r, r.exposed(parts)))
	first := chromium.Open(t, server.URL("/recipe"))
	shows(first, "You edit.")
	r.begin(first)
	first.Type("typed in the first tab")
	shows(first, "Saved.")

	second := chromium.Open(t, server.URL("/recipe"))
	shows(second, "Another tab edits.")
	second.WaitFor(r.text+" === 'typed in the first tab'", browser.Limit)
	r.begin(second)
	second.Type("not allowed, ")
	assert.Equal(t, "typed in the first tab", browser.Get[string](second, r.text), "a read-only editor takes nothing")

	second.MustEval("document.querySelector('#ask').click()", nil)
	shows(second, "You edit.")
	shows(first, "Another tab edits.")
	r.begin(second)
	second.Type("then in the second")
	shows(second, "Saved.")

	first.Show() // Monaco draws nothing in a hidden tab
	first.Reload()
	// The editor decides where the caret is after a text was loaded.
	both := "['typed in the first tab', 'then in the second'].every((part) => text.includes(part)) && text"
	first.WaitFor("{ const text = "+r.text+"; "+both+" }", browser.Limit)

	r.quiet(second)
	second.Close()
	shows(first, "You edit.")
	r.begin(first)
	loaded := browser.Get[string](first, "shown()")
	first.Press("Control+z")
	assert.Equal(t, loaded, browser.Get[string](first, "shown()"), "the loaded text is no change that can be undone")
	r.quiet(first)
	first.Close()
}

// begin puts the caret into the editor.
func (r recipe) begin(tab *browser.Tab) {
	if r.click != nil {
		r.click(tab)
		return
	}
	tab.MustEval(r.focus, nil)
}

// quiet fails the test for errors on the console.
func (r recipe) quiet(tab *browser.Tab) {
	if r.report == "" {
		tab.Quiet()
		return
	}
	tab.Quiet(r.report)
}

// exposed returns the parts with a script that lets the test read, empty and remove the editor.
func (r recipe) exposed(parts map[string]string) map[string]string {
	all := maps.Clone(parts)
	all[r.script] += fmt.Sprintf("Object.assign(globalThis, { shown: () => %s, emptied: () => { %s; }, removed: () => { %s; }, %s });\n", r.read, r.empty, r.remove, r.expose)
	return all
}

func shows(tab *browser.Tab, status string) {
	tab.WaitFor(fmt.Sprintf("document.querySelector('#status').textContent === %q", status), browser.Limit)
}

// ingredients returns the blocks of a page: scripts by the name in their first line, and the HTML before each
// script by the same name.
func ingredients(t *testing.T, page string) map[string]string {
	t.Helper()
	all, err := allBlocks("../..")
	require.NoError(t, err)
	parts := map[string]string{}
	var html string
	for _, b := range all {
		switch {
		case b.page != page:
		case b.lang == "html":
			html = b.text
		case b.lang == "js":
			first, _, _ := strings.Cut(b.text, "\n")
			name, ok := strings.CutPrefix(first, "// ")
			require.True(t, ok, "%s does not begin with its name", b.name())
			parts[name], parts[name+".html"] = b.text, html
		}
	}
	return parts
}

// kitchenOf serves the page of a recipe under the policy that it needs, with its bundled script.
func kitchenOf(t *testing.T, r recipe, parts map[string]string) http.Handler {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"save.js", r.script} {
		require.Contains(t, parts, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(parts[name]), 0o644))
	}
	bundled(t, dir, r.script)
	files, err := static.Handler(os.DirFS("../../web/site"))
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", files)
	for _, path := range glob(t, filepath.Join(dir, "out", "*")) {
		mux.HandleFunc("/"+filepath.Base(path), func(w http.ResponseWriter, request *http.Request) { http.ServeFile(w, request, path) })
	}
	fonts := http.FileServer(http.Dir(filepath.Join(editors, "@excalidraw/excalidraw/dist/prod")))
	mux.Handle("/fonts/", fonts)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/recipe", func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Security-Policy", r.policy(w.Header().Get("Content-Security-Policy")))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, strings.ReplaceAll(parts[r.script+".html"], "{nonce}", nonce))
	})
	return mux
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// bundled bundles a script of dir into dir/out, with Monaco's worker if the script needs it.
func bundled(t *testing.T, dir, name string) {
	t.Helper()
	modules, err := filepath.Abs(editors)
	require.NoError(t, err)
	require.DirExists(t, modules, "the editors are not installed; run make test-docs")
	entries := []api.EntryPoint{{InputPath: filepath.Join(dir, name), OutputPath: strings.TrimSuffix(name, ".js")}}
	if name == "monaco.js" {
		entries = append(entries, api.EntryPoint{InputPath: "monaco-editor/editor/editor.worker.js", OutputPath: "editor.worker"})
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir:       dir,
		EntryPointsAdvanced: entries,
		Outdir:              filepath.Join(dir, "out"),
		Bundle:              true,
		Write:               true,
		Format:              api.FormatESModule,
		Platform:            api.PlatformBrowser,
		Target:              api.ES2022,
		Loader:              map[string]api.Loader{".ttf": api.LoaderFile, ".woff2": api.LoaderFile},
		Conditions:          []string{"module", "production"},
		Define:              map[string]string{"process.env.NODE_ENV": `"production"`},
		Splitting:           true,
		NodePaths:           []string{modules},
		Plugins:             []api.Plugin{holdfast},
		LogLevel:            api.LogLevelSilent,
	})
	require.Empty(t, api.FormatMessages(result.Errors, api.FormatMessagesOptions{}))
}

// holdfast leaves the import of the package as an import of the site's own files.
var holdfast = api.Plugin{Name: "holdfast", Setup: func(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: `^holdfast$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: "./holdfast.js", External: true}, nil
	})
}}
