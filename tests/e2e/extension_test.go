package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// extension makes the folder of an extension that contains the package, and returns its path and its origin: Chromium
// derives the identifier from the path.
func extension(t *testing.T) (dir, origin string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(siteDir, "holdfast*"))
	require.NoError(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644))
	}
	for name, text := range map[string]string{
		"manifest.json": `{"manifest_version": 3, "name": "Notes", "version": "1",
			"content_security_policy": {"extension_pages": "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; object-src 'none'"}}`,
		"blank.html": "<!doctype html><title>blank</title><link rel=icon href='data:,'>",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	sum := sha256.Sum256([]byte(dir))
	letters := strings.Map(func(digit rune) rune {
		return 'a' + rune(strings.IndexRune("0123456789abcdef", digit))
	}, hex.EncodeToString(sum[:16]))
	return dir, "chrome-extension://" + letters
}

// A page of an extension locks and saves as a page of a site does, with the policy 'wasm-unsafe-eval' in its manifest.
func TestExtensionPage(t *testing.T) {
	t.Parallel()
	dir, origin := extension(t)
	chromium := browser.Start(t, browser.Options{Flags: []string{"disable-extensions=", "load-extension=" + dir, "disable-features=DisableLoadExtensionCommandLineSwitch"}})
	eachHost(t, func(t *testing.T, host string) {
		first, second := chromium.Open(t, origin+"/blank.html"), chromium.Open(t, origin+"/blank.html")
		for _, tab := range []*browser.Tab{first, second} {
			begin(tab, at(host, "extension "+host))
		}
		first.MustEval(`{
			const saver = await hf.initAutoSave(() => 'typed', {debounceMs: 20})
			saver.markDirty()
			await saver.flushNow()
			result = saver.state().storage
		} null`, nil)
		assert.Equal(t, "opfs", browser.Get[string](first, "result"))
		assert.Equal(t, "acquire-denied", browser.Get[event](second, "await failure(hf.acquireProjectLock({ifAvailable: true}))")["code"])
		first.MustEval("await hf.close()", nil)
		second.MustEval("const reader = await hf.initAutoSave(() => ''); result = new TextDecoder().decode(await reader.read('current')); await hf.close()", nil)
		assert.Equal(t, "typed", browser.Get[string](second, "result"))
		for _, tab := range []*browser.Tab{first, second} {
			assert.Empty(t, browser.Get[[]string](tab, "uncaught"))
			tab.Quiet()
			tab.Close()
		}
	})
}
