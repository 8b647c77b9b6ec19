package consumer

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/loopback"
	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

var full = flag.Bool("full", false, "build and open a page with every stack of docs/stacks.md")

// base is the path under which the pages of the stacks are, to show that no stack needs the root of an origin.
const base = "/app/"

// A stack is a bundler or a framework of docs/stacks.md, in the version that the test installs.
type stack struct {
	name     string
	packages string
	files    string // folder in stacks/ with its configuration; "" for none
	build    string // command that makes the folder out
	out      string
	develop  string // command of the development server, which gets the port; "" if none is tested
	script   string // the script element of a page that the stack does not make; "" if it makes the page
	beside   bool   // the files of the package are copied beside the bundle, and baseURL names them
	inline   bool   // its pages have inline scripts, so they do not run under the policy of the site
}

const (
	viteBuild = "vite build --base /app/"
	viteDev   = "vite --base /app/ --host 127.0.0.1 --strictPort --port"
)

var stacks = []stack{
	{name: "Vite 5", packages: "vite@5.4.21", files: "vite", build: viteBuild, out: "dist", develop: viteDev},
	{name: "Vite 6", packages: "vite@6.4.6", files: "vite", build: viteBuild, out: "dist", develop: viteDev},
	{name: "Vite 7", packages: "vite@7.3.8", files: "vite", build: viteBuild, out: "dist", develop: viteDev},
	{name: "Vite 8", packages: "vite@8.3.8", build: viteBuild, out: "dist", develop: viteDev},
	// Only the hint about the size of the Wasm is off.
	{name: "webpack 5", packages: "webpack@5.112.2 webpack-cli@7.3.1", build: "webpack ./src/main.js --mode production --no-performance", out: "dist", script: `<script defer src="main.js">`},
	{name: "Parcel 2", packages: "parcel@2.16.4", build: "parcel build index.html --public-url /app/", out: "dist", inline: true},
	{name: "Next 16, Turbopack", packages: "next@16.4.6 react@19.3.1 react-dom@19.3.1", files: "next", build: "next build --turbopack", out: "out", inline: true},
	{name: "Next 16, webpack", packages: "next@16.4.6 react@19.3.1 react-dom@19.3.1", files: "next", build: "next build --webpack", out: "out", inline: true},
	{name: "Nuxt 4", packages: "nuxt@4.3.1", files: "nuxt", build: "nuxt generate", out: ".output/public", develop: "nuxt dev --host 127.0.0.1 --port", inline: true},
	{name: "SvelteKit 2", packages: "@sveltejs/kit@2.70.4 @sveltejs/adapter-static@3.0.10 @sveltejs/vite-plugin-svelte@6.2.4 svelte@5.57.1 vite@7.3.8", files: "sveltekit", build: "vite build", out: "build", develop: "vite --host 127.0.0.1 --strictPort --port", inline: true},
	{name: "esbuild", packages: "esbuild@0.28.2", build: "esbuild src/main.js --bundle --format=esm --outdir=dist", out: "dist", script: `<script type="module" src="main.js">`, beside: true},
	{name: "Rollup 4", packages: "rollup@4.68.7 @rollup/plugin-node-resolve@16.0.3", build: "rollup src/main.js --format es --plugin node-resolve --dir dist", out: "dist", script: `<script type="module" src="main.js">`, beside: true},
}

// Each stack installs the packed tarball in a folder of its own. Its page acquires locks and saves a text, in both hosts.
func TestStacks(t *testing.T) {
	if !*full {
		t.Skip("make test-consumers runs it: it installs every stack")
	}
	chromium := browser.Start(t, browser.Options{})
	for _, s := range stacks {
		t.Run(s.name, func(t *testing.T) {
			project := s.install(t)
			t.Run("build", func(t *testing.T) { s.testBuild(t, chromium, project) })
			if s.develop != "" {
				t.Run("development server", func(t *testing.T) { s.testDevelopment(t, chromium, project) })
			}
		})
	}
}

// install makes the folder of a project with the stack, the package and the program of the Vite project as JavaScript.
func (s stack) install(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	if s.files != "" {
		require.NoError(t, os.CopyFS(project, os.DirFS(filepath.Join("stacks", s.files))))
	}
	page, err := os.ReadFile("vite/index.html")
	require.NoError(t, err)
	write(t, filepath.Join(project, "index.html"), strings.Replace(string(page), "main.ts", "main.js", 1))
	source, err := os.ReadFile("vite/src/main.ts")
	require.NoError(t, err)
	program := api.Transform(string(source), api.TransformOptions{Loader: api.LoaderTS})
	require.Empty(t, program.Errors)
	main := string(program.Code)
	if s.beside {
		main = strings.ReplaceAll(main, "openHoldfast(options)", `openHoldfast({ ...options, baseURL: new URL("holdfast/", location.href) })`)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(project, "src"), 0o755))
	write(t, filepath.Join(project, "src", "main.js"), main)
	write(t, filepath.Join(project, "package.json"), `{"private": true, "type": "module"}`)
	run(t, project, "npm", append([]string{"install", "--no-progress", "--no-audit", "--no-fund", packed(t).tarball}, strings.Fields(s.packages)...)...)
	return project
}

// testBuild builds the project without a warning and opens its page, under the policy of the site where that is possible.
func (s stack) testBuild(t *testing.T, chromium *browser.Browser, project string) {
	out, err := s.command(t, project, s.build).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.NotRegexp(t, `(?i)\bwarning\b`, string(out))
	dir := filepath.Join(project, s.out)
	if s.beside {
		require.NoError(t, os.CopyFS(filepath.Join(dir, "holdfast"), os.DirFS(filepath.Join(project, "node_modules", "holdfast"))))
	}
	if s.script != "" {
		page, err := os.ReadFile(filepath.Join(project, "index.html"))
		require.NoError(t, err)
		write(t, filepath.Join(dir, "index.html"), strings.Replace(string(page), `<script type="module" src="/src/main.js">`, s.script, 1))
	}
	files := http.StripPrefix(strings.TrimSuffix(base, "/"), http.FileServer(http.Dir(dir)))
	server := browser.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.inline {
			static.SecurityHeaders(w.Header())
		}
		files.ServeHTTP(w, r)
	}))
	plays(t, chromium, server.URL(base))
}

func (s stack) testDevelopment(t *testing.T, chromium *browser.Browser, project string) {
	port, err := loopback.FreePort()
	require.NoError(t, err)
	address := "127.0.0.1:" + port
	cmd := s.command(t, project, s.develop+" "+port)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + base)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond, "the development server answers")
	plays(t, chromium, "http://"+address+base)
}

// command returns a command of a package that the project has installed, in a process group of its own.
func (s stack) command(t *testing.T, project, line string) *exec.Cmd {
	t.Helper()
	words := strings.Fields(line)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, filepath.Join(project, "node_modules", ".bin", words[0]), words[1:]...)
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "CI=1", "NEXT_TELEMETRY_DISABLED=1", "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// plays opens a page and asserts that its program has run.
func plays(t *testing.T, chromium *browser.Browser, url string) {
	t.Helper()
	tab := chromium.Open(t, url)
	tab.WaitFor("!!globalThis.story", time.Minute)
	tab.MustEval("story.then((lines) => { globalThis.told = lines }, (error) => { globalThis.told = [String(error)] }); null", nil)
	tab.WaitFor("globalThis.told", time.Minute)
	assert.Equal(t, append(story, story...), browser.Get[[]string](tab, "told"))
	tab.Quiet()
	tab.Close()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}
