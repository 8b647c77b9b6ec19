package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// dav sends a request of WebDAV about the project's document, as a desktop program does.
func (s server) dav(t *testing.T, method, body string, header ...string) (status int, token string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/dav/project", strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("Lock-Token")
}

const davLock = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>`

// While a desktop program has the document open, the editor in the tab is read-only. It then edits the program's text, and
// the program can neither lock nor save.
func TestDesktopProgramBesideATab(t *testing.T) {
	t.Parallel()
	server := serve(t)
	tab := server.member(t, profiles(t, 1)[0], "worker", "Ann")
	status, token := server.dav(t, "LOCK", davLock, "Timeout", "Second-600")
	require.Equal(t, http.StatusCreated, status)

	tab.MustEval(`
		globalThis.text = ''
		globalThis.saver = await hf.initAutoSave(() => text, {debounceMs: 50})
		saver.addEventListener('autosave:editable', ({detail}) => { if (detail.content) text = new TextDecoder().decode(detail.content) })`, nil)
	assert.True(t, browser.Get[bool](tab, "saver.readOnly"))
	status, _ = server.dav(t, "PUT", "from the desk", "If", "("+token+")")
	require.Equal(t, http.StatusNoContent, status)
	assert.True(t, browser.Get[bool](tab, "saver.readOnly"), "the program still has it open")
	status, _ = server.dav(t, "UNLOCK", "", "Lock-Token", token)
	require.Equal(t, http.StatusNoContent, status)

	tab.WaitFor("!saver.readOnly && text === 'from the desk'", browser.Limit)
	for _, method := range []string{"LOCK", "PUT", "DELETE"} {
		status, _ = server.dav(t, method, map[string]string{"LOCK": davLock}[method])
		assert.Equal(t, http.StatusLocked, status, method)
	}
	tab.MustEval("text += ', and from the web'; saver.markDirty(); await saver.dispose()", nil)
	assert.Equal(t, "from the desk, and from the web", browser.Get[string](tab, "await (await fetch('/dav/project')).text()"))
	status, _ = server.dav(t, "LOCK", davLock)
	assert.Equal(t, http.StatusOK, status)
}
