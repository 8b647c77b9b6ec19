package wpt

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

//go:embed testdata
var testdata embed.FS

// locks are the locks under test: those of a Holdfast with this strategy and host, or the browser's own for comparison.
type locks struct {
	Strategy string `json:"strategy"`
	Host     string `json:"host"`
	alone    bool   // Holdfast finds no Web Locks
}

// name returns the name of the locks under test.
func (l locks) name() string {
	switch {
	case l.Strategy == "":
		return "Web Locks, without Holdfast"
	case l.Strategy == "web-lock":
		return "Web Locks (the browser answers)"
	case l.alone:
		return "`.lock` file"
	}
	return "Web Locks, then `.lock` file"
}

// A suite serves the public tests unchanged. Every page, frame and worker of them finds Holdfast's locks in
// navigator.locks.
type suite struct {
	root  string
	locks locks

	mu   sync.Mutex
	warm bool   // the tests wait until the runtime is ready
	name string // of the project of the run; frames and workers share it
}

func (s *suite) begin(warm bool, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warm, s.name = warm, name
}

// contexts returns the kinds of globals in which a file must run, according to its header.
func (s *suite) contexts(file string) ([]string, error) {
	if strings.HasSuffix(file, ".html") {
		return []string{"window"}, nil
	}
	globals, err := s.meta(file, "global")
	if err != nil || len(globals) == 0 {
		return []string{"window", "dedicatedworker"}, err
	}
	return strings.Split(globals[0], ","), nil
}

// meta returns the values of a key in the headers of a file.
func (s *suite) meta(file, key string) (values []string, err error) {
	text, err := s.source(file)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "// META: "+key+"="); ok {
			values = append(values, value)
		}
	}
	return values, err
}

// address returns the page that runs a file in a context.
func (s *suite) address(file, context string) string {
	switch {
	case strings.HasSuffix(file, ".html"):
		return "/web-locks/" + file
	case context == "window":
		return "/web-locks/" + strings.TrimSuffix(file, ".js") + ".html"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Workers of earlier runs have other addresses.
	return "/web-locks/elsewhere.html?" + context + "=" + strings.TrimSuffix(file, ".js") + "." + context + ".js?" + url.QueryEscape(s.name)
}

// serve serves the suite and Holdfast in an origin of their own.
func (s *suite) serve(t *testing.T) *browser.Server {
	t.Helper()
	site, err := static.Handler(os.DirFS("../../web/site"))
	require.NoError(t, err, "run make build")
	mux := http.NewServeMux()
	mux.Handle("/", site)
	mux.Handle("/resources/", http.FileServer(http.Dir(s.root)))
	mux.HandleFunc("/resources/testharnessreport.js", func(w http.ResponseWriter, _ *http.Request) { write(w, ".js", mine("results.js")) })
	mux.HandleFunc("/web-locks/{name...}", func(w http.ResponseWriter, r *http.Request) {
		text, err := s.page(r.PathValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		write(w, path.Ext(r.PathValue("name")), text)
	})
	for name, before := range map[string]string{
		"holdfast.js": browsers, "holdfast-page.js": browsers, "holdfast-worker.js": s.hidden(), "holdfast-helper.js": s.hidden(),
	} {
		script, err := os.ReadFile(filepath.Join("../../web/site", name))
		require.NoError(t, err)
		text := before + strings.ReplaceAll(string(script), "globalThis.navigator", "navigator")
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) { write(w, ".js", text) })
	}
	return browser.Serve(t, mux)
}

// browsers gives a module of Holdfast the browser's navigator, in realms where the tests' navigator has Holdfast's
// locks.
const browsers = "const navigator = new Proxy({}, {get: (_, name) => (globalThis.own?.navigator ?? globalThis.navigator)[name]});"

// hidden returns the script that hides the browser's locks from Holdfast's workers.
func (s *suite) hidden() string {
	if s.locks.alone {
		return "Object.defineProperty(navigator, 'locks', {value: undefined});"
	}
	return ""
}

// page returns a file of the suite, or a page or worker that runs one.
func (s *suite) page(name string) (string, error) {
	if name == "elsewhere.html" {
		return mine(name), nil
	}
	for _, context := range []string{"dedicatedworker", "sharedworker", "serviceworker"} {
		if file, ok := strings.CutSuffix(name, "."+context+".js"); ok {
			return s.worker(file+".js", context)
		}
	}
	if file, ok := strings.CutSuffix(name, ".any.html"); ok {
		return s.window(file + ".any.js")
	}
	text, err := s.source(name)
	switch path.Ext(name) {
	case ".js":
		text = s.own() + text
	case ".html":
		text = s.intoPage(text)
	}
	return text, err
}

// intoPage inserts Holdfast's locks before the first script of a page.
func (s *suite) intoPage(text string) string {
	const harness = `<script src="/resources/testharnessreport.js"></script>`
	text = strings.Replace(text, "<script", "<script>"+s.own()+"</script>\n<script", 1)
	return strings.Replace(text, harness, harness+"<script>promise_setup(() => own.start());</script>", 1)
}

// window returns the page for a file that runs in a window.
func (s *suite) window(file string) (string, error) {
	scripts, err := s.meta(file, "script")
	text := strings.Replace(mine("run.html"), "OWN", s.own(), 1) + "<script>promise_setup(() => own.start());</script>\n"
	for _, script := range append(scripts, file) {
		text += `<script src="` + script + `"></script>` + "\n"
	}
	return text, err
}

// worker returns the script of a worker that runs a file. A service worker can import its scripts in only one way.
func (s *suite) worker(file, context string) (string, error) {
	scripts, err := s.meta(file, "script")
	scripts = append(scripts, file)
	global := "self.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };\n"
	start := "promise_setup(() => own.start());\n"
	if context != "serviceworker" {
		quoted, _ := json.Marshal(scripts)
		return s.own() + global + "importScripts('/resources/testharness.js');\n" + start + "importScripts(..." + string(quoted) + ");\ndone();\n", err
	}
	text := "import * as holdfast from '/holdfast.js';\nimport '/holdfast-page.js';\nimport '/resources/testharness.js';\n" + s.own("Promise.resolve(holdfast)") + global + start
	for _, script := range scripts {
		source, err := s.source(script)
		if err != nil {
			return "", err
		}
		text += "(function () {\n" + source + "\n}).call(self);\n"
	}
	return text + "done();\n", err
}

func (s *suite) source(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.root, "web-locks", filepath.FromSlash(path.Clean("/"+name))))
	return string(text), err
}

// own returns the script that puts Holdfast's locks into a realm. imported is how the realm imports the package.
func (s *suite) own(imported ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks.Strategy == "" {
		return "globalThis.own = {start: async () => {}};"
	}
	options := map[string]any{"strategy": s.locks.Strategy, "host": s.locks.Host, "root": s.name}
	opening, err := json.Marshal(map[string]any{"options": options, "alone": s.locks.alone, "warm": s.warm})
	if err != nil {
		panic(err) // these are strings
	}
	return strings.NewReplacer("OPENING", string(opening), "IMPORTED", slices.Concat(imported, []string{`import("/holdfast.js")`})[0]).Replace(mine("own.js"))
}

func mine(name string) string {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func write(w http.ResponseWriter, kind, text string) {
	types := map[string]string{".js": "text/javascript", ".html": "text/html"}
	w.Header().Set("Content-Type", types[kind]+"; charset=utf-8")
	_, _ = fmt.Fprint(w, text)
}
