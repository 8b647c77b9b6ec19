package docs

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/outside"
)

// testMs is the limit of a runner for a test, in milliseconds. The machine may be busy.
const testMs = "60000"

const testingPage = "docs/testing.md"

// faultyPage is the application of the examples with faults in a real page.
const (
	faultyPage   = `<!doctype html><html lang="en"><title>Editor</title><link rel="icon" href="data:,"><textarea id="text" aria-label="Text" readonly></textarea><p id="status"></p><script type="module">` + faultyScript + `</script></html>`
	faultyScript = `
import { createHoldfast } from "./holdfast/holdfast.js";
import { edit } from "./editor.js";
const status = document.querySelector("#status");
const autosave = edit(createHoldfast({ ownerName: "Ann" }), document.querySelector("#text"));
autosave.addEventListener("autosave:phase", ({ detail }) => { if (detail.phase === "error") status.textContent = detail.lastError.code; });
autosave.addEventListener("autosave:saved", () => { status.textContent = "saved"; });
`
)

// installed puts the built package beside the test runners, as npm does.
var installed = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("runners")
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "node_modules", "holdfast")
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	return dir, os.CopyFS(to, os.DirFS("../../dist"))
})

// node runs Node.js in a folder that finds the package and the runners.
func node(t *testing.T, dir string, args ...string) {
	t.Helper()
	command(t, dir, nil, "node", args...)
}

func command(t *testing.T, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// On a server the package does nothing, and its calls reject with "unsupported".
func TestPackageOnAServer(t *testing.T) {
	t.Parallel()
	dir, err := installed()
	require.NoError(t, err)
	node(t, dir, "--test", "server.test.mjs")
}

// holdfast/testing keeps the contract in Node.js.
func TestTestingInNode(t *testing.T) {
	t.Parallel()
	dir, err := installed()
	require.NoError(t, err)
	node(t, dir, "--test", "tabs.test.mjs", "service.test.mjs")
}

// withRunners returns a folder that finds the package and the runners.
func withRunners(t *testing.T) string {
	t.Helper()
	from, err := installed()
	require.NoError(t, err)
	modules := filepath.Join(from, "node_modules")
	require.DirExists(t, filepath.Join(modules, "vitest"), "the test runners are not installed; run make test-docs")
	dir := t.TempDir()
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	write(t, dir, "package.json", `{"type": "module"}`)
	return dir
}

// modules returns the modules of docs/testing.md by their names.
func modules(t *testing.T) map[string]string {
	t.Helper()
	named := make(map[string]string)
	for _, b := range blocksIn(t, "mjs") {
		named[regexp.MustCompile(`[\w.]+\.mjs`).FindString(b.text)] = b.text
	}
	return named
}

// The published test runners run the examples of docs/testing.md.
func TestTestingInRunners(t *testing.T) {
	t.Parallel()
	dir := withRunners(t)
	for name, text := range modules(t) {
		if !strings.HasPrefix(name, "faults.") {
			write(t, dir, name, text)
		}
	}
	for _, environment := range []string{"jsdom", "happy-dom"} {
		node(t, dir, "node_modules/vitest/vitest.mjs", "run", "--environment", environment, "--testTimeout", testMs)
	}
	node(t, dir, "--experimental-vm-modules", "node_modules/jest/bin/jest.js", "--env", "jsdom", "--testMatch", "**/*.jest.mjs", "--transform", "{}", "--testTimeout", testMs)
}

// The published drivers of browsers run the examples with faults in a real page.
func TestFaultsInBrowsers(t *testing.T) {
	t.Parallel()
	dir, all := withRunners(t), modules(t)
	site := http.FileServerFS(os.DirFS("../../dist"))
	mux := http.NewServeMux()
	mux.Handle("/holdfast/", http.StripPrefix("/holdfast", site))
	files := map[string]string{"/{$}": faultyPage, "/editor.js": all["editor.mjs"]}
	for path, text := range files {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'sha256-"+sum(faultyScript)+"' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'")
			w.Header().Set("Content-Type", map[bool]string{true: "text/html", false: "text/javascript"}[path == "/{$}"])
			_, _ = w.Write([]byte(text))
		})
	}
	server := browser.Serve(t, mux)
	chromium := filepath.Join(dir, "chromium")
	require.NoError(t, os.WriteFile(chromium, []byte("#!/bin/sh\nexec "+browser.Find()+" --no-sandbox --disable-dev-shm-usage \"$@\"\n"), 0o755))
	env := []string{"APP_URL=" + server.URL("/"), "CHROMIUM=" + chromium, "NO_COLOR=1"}

	t.Run("Playwright", func(t *testing.T) {
		write(t, dir, "faults.spec.mjs", all["faults.spec.mjs"])
		write(t, dir, "playwright.config.mjs", "export default { timeout: "+testMs+", expect: { timeout: "+testMs+" }, use: { launchOptions: { executablePath: process.env.CHROMIUM } } }")
		command(t, dir, env, "node", "node_modules/@playwright/test/cli.js", "test")
	})
	t.Run("Puppeteer", func(t *testing.T) {
		write(t, dir, "faults.puppeteer.mjs", all["faults.puppeteer.mjs"])
		command(t, dir, env, "node", "--test", "faults.puppeteer.mjs")
	})
	t.Run("chromedp", func(t *testing.T) {
		var found int
		for _, b := range blocksIn(t, "go") {
			if b.page == testingPage {
				write(t, dir, "faults_test.go", b.text)
				found++
			}
		}
		require.Equal(t, 1, found)
		outside.Module(t, dir, "../..")
		command(t, dir, env, "go", "test", "-count=1", ".")
	})
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NotEmpty(t, text, name)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// sum returns the hash of a script for a policy.
func sum(script string) string {
	hash := sha256.Sum256([]byte(script))
	return base64.StdEncoding.EncodeToString(hash[:])
}
