package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A browser renders a page in advance, and shows it ten seconds later. Until then, the browser answers no request for a lock or file. The
// page gets its lease and edits when it is shown.
func TestPrerenderedPageEditsWhenItIsShown(t *testing.T) {
	t.Parallel()
	eachHostAtOnce(t, func(t *testing.T, host string) {
		mux, said, begun := pages(t, siteDir), make(chan string, 100), make(chan struct{})
		begins := sync.OnceFunc(func() { close(begun) })
		mux.HandleFunc("/say", func(_ http.ResponseWriter, r *http.Request) {
			said <- r.URL.Query().Get("what")
			begins()
		})
		mux.HandleFunc("/begun", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-begun:
			case <-r.Context().Done():
			}
		})
		page := func(path, body string) {
			mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = w.Write([]byte("<!doctype html><title>page</title><link rel=icon href='data:,'>" + body))
			})
		}
		page("/first", `
			<script type=speculationrules>{"prerender": [{"urls": ["/next"], "eagerness": "immediate"}]}</script>
			<script>fetch('/begun').then(() => setTimeout(() => { location = '/next' }, 10000))</script>`)
		page("/next", `<script type=module>
			const say = what => fetch('/say?what=' + encodeURIComponent((document.prerendering ? 'in advance: ' : 'shown: ') + what))
			say('begins')
			const {openHoldfast} = await import('/holdfast.js')
			const hf = await openHoldfast({host: '`+host+`'})
			hf.ready.then(() => say('ready'), say)
			hf.acquireProjectLock({path: ['place']}).then(lease => lease.release()).then(() => say('lease'), say)
			hf.initAutoSave(() => 'text', {path: ['text']}).then(autosave => say(autosave.readOnly ? 'read-only' : 'edits'), say)
		</script>`)
		alone(t, browser.Serve(t, mux).URL("/first"))
		var all []string
		for len(all) < 4 {
			select {
			case what := <-said:
				all = append(all, what)
			case <-time.After(browser.Limit):
				require.FailNow(t, "the page says no more", all)
			}
		}
		assert.Equal(t, "in advance: begins", all[0])
		assert.ElementsMatch(t, []string{"shown: ready", "shown: lease", "shown: edits"}, all[1:])
	})
}

// alone opens a URL in a browser that nobody controls: Chromium renders nothing in advance for a page with a debugger.
func alone(t *testing.T, url string) {
	t.Helper()
	profile, err := os.MkdirTemp("", "hf-")
	require.NoError(t, err)
	flags := []string{"--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-features=Prerender2MemoryControls", "--user-data-dir=" + profile}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox")
	}
	cmd := exec.Command(browser.Find(), append(flags, url)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		assert.Eventually(t, func() bool { return os.RemoveAll(profile) == nil }, browser.Limit, 100*time.Millisecond)
	})
}
