package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/users/oidc/oidctest"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// fileOf writes a file of the test.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// keyOf is a line of a file of API keys.
func keyOf(user, key string) string {
	return fmt.Sprintf("%s sha256:%x\n", user, sha256.Sum256([]byte(key)))
}

// rekey gives the user ann another key, and returns when the server knows that one.
func (s server) rekey(t *testing.T, file, key string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(keyOf("ann", key)), 0o600))
	s.Signal(syscall.SIGHUP)
	require.Eventually(t, func() bool {
		request, err := http.NewRequest(http.MethodGet, s.URL+"/api/documents/project/lock", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, browser.Limit, 50*time.Millisecond)
}

// signedIn opens a tab with a Holdfast whose user has the tokens of a list: each one until the server refuses it. The page counts how
// often it is asked.
func (s server) signedIn(t *testing.T, b *browser.Browser, host string, tokens ...string) *browser.Tab {
	t.Helper()
	list, err := json.Marshal(tokens)
	require.NoError(t, err)
	tab := b.Open(t, s.URL+"/room.html")
	begin(tab, "")
	tab.MustEval(fmt.Sprintf("globalThis.tokens = %s; globalThis.asked = 0; globalThis.askedAt = 0; globalThis.token = async () => { asked++; askedAt = Date.now(); return tokens.shift() }; null", list), nil)
	tab.MustEval(fmt.Sprintf("await start({host: %[1]q, root: 'of ' + %[1]q, ownerName: 'nobody reads this', server: {url: location.origin, token: () => token()}}); await hf.ready; null", host), nil)
	return tab
}

// The tokens of a provider expire while a page edits. The page gives the next one, and neither the lock nor a word is lost.
func TestTokensExpireWhileAPageEdits(t *testing.T) {
	t.Parallel()
	p := oidctest.New(t)
	server := serve(t, "--oidc-issuer", p.Issuer(), "--oidc-audience", "holdfast")
	eachHost(t, func(t *testing.T, host string) {
		began := time.Now()
		var tokens []string
		for i := range 100 {
			tokens = append(tokens, p.Token(map[string]any{"iss": p.Issuer(), "sub": "ann", "aud": "holdfast", "exp": began.Add(time.Duration(i+1) * 3 * time.Second).Unix()}))
		}
		ann := server.signedIn(t, profiles(t, 1)[0], host, tokens...)
		ann.MustEval("token = () => { asked++; return tokens.find(t => JSON.parse(atob(t.split('.')[1])).exp * 1000 > Date.now() + 6000) }; null", nil)
		ann.MustEval(sharedEditor, nil)
		require.False(t, browser.Get[bool](ann, "saver.readOnly"))
		for i := range 2 {
			asked := browser.Get[int](ann, "asked")
			ann.MustEval(fmt.Sprintf("text += 'line %d;'; saver.markDirty(); await saver.flushNow(); null", i), nil)
			require.Eventually(t, func() bool {
				ann.MustEval("saver.markDirty(); await saver.flushNow(); null", nil)
				return browser.Get[int](ann, "asked") > asked
			}, browser.Limit, 500*time.Millisecond, "the token has expired")
		}
		assert.Equal(t, []string{"editable"}, browser.Get[[]string](ann, "heard"))
		assert.Equal(t, "line 0;line 1;", browser.Get[string](ann, "decoded(await saver.read('current'))"))
		stored := browser.Get[documentLock](ann, fmt.Sprintf("await (await fetch(saver.lease.resource + '/lock', {headers: {authorization: 'Bearer %s'}})).json()", tokens[99]))
		assert.Equal(t, "ann", stored.Name, "the user's name, whatever the page says")
		assert.Zero(t, browser.Get[int](ann, "performance.getEntries().filter(e => e.name.includes('eyJ')).length"), "no URL has a token")
		ann.MustEval("await hf.close(); null", nil)
	})
}

// The server refuses a page that edits, for good: the page is read-only, and its words are a draft. They are saved when the user signs in.
func TestAPageWhoseUserIsRefused(t *testing.T) {
	t.Parallel()
	keys := fileOf(t, "")
	server := serve(t, "--api-keys", keys)
	eachHost(t, func(t *testing.T, host string) {
		server.rekey(t, keys, "ann-key")
		ann := server.signedIn(t, profiles(t, 1)[0], host, "ann-key", "stolen-key", "stolen-key", "stolen-key", "stolen-key", "stolen-key")
		ann.MustEval(sharedEditor, nil)
		require.False(t, browser.Get[bool](ann, "saver.readOnly"))
		server.rekey(t, keys, "new-key")
		ann.MustEval("text = 'typed by ann'; saver.markDirty(); null", nil)
		ann.WaitFor("saver.readOnly", browser.Limit) // its heartbeat was refused
		assert.Equal(t, "not-allowed", browser.Get[string](ann, "saver.state().lastError.code"))
		refused := browser.Get[failed](ann, "await failure(saver.flushNow())")
		assert.Equal(t, "not-allowed", refused.Code)
		assert.False(t, refused.Retryable)
		assert.NotContains(t, refused.Message, "stolen-key")
		ann.WaitFor("saver.state().drafts === 1", browser.Limit)
		denied := browser.Get[failed](ann, "await failure(hf.acquireProjectLock({path: ['other']}))")
		assert.Equal(t, "not-allowed", denied.Code)
		// Each request that is under way asks once. An attempt that is repeated would ask at least ten times before it pauses for three seconds.
		ann.WaitFor("Date.now() - askedAt > 3000", browser.Limit)
		assert.LessOrEqual(t, browser.Get[int](ann, "asked"), 10, "the page is not asked repeatedly for a token")

		ann.MustEval("tokens = ['new-key']; await saver.requestEdit(); await saver.flushNow(); null", nil)
		assert.Equal(t, "typed by ann", browser.Get[string](ann, "decoded(await saver.read('current'))"))
		ann.MustEval("await hf.close(); null", nil)
	})
}

// Requests to edit reach the holder over a WebSocket whose user only a subprotocol names.
func TestSignedInUsersAskEachOther(t *testing.T) {
	t.Parallel()
	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")+keyOf("bob", "bob-key")), "--policy", fileOf(t, "signed-in * read lock write"))
	browsers := profiles(t, 2)
	ann, bob := server.signedIn(t, browsers[0], "worker", "ann-key"), server.signedIn(t, browsers[1], "worker", "bob-key")
	ann.MustEval(sharedEditor, nil)
	bob.MustEval(sharedEditor, nil)
	require.True(t, browser.Get[bool](bob, "saver.readOnly"))
	ann.MustEval("text = 'typed just now'; saver.markDirty(); null", nil)
	bob.MustEval("await saver.requestEdit(); null", nil)
	assert.Equal(t, "typed just now", browser.Get[string](bob, "text"))
	ann.WaitFor("saver.readOnly", browser.Limit)
	assert.Equal(t, "bob", browser.Get[string](ann, "events.find(e => e.type === 'lock:handover-requested').from"))
}

// A page whose function gives no token gets a code and a reason from each call, in time.
func TestPagesThatGiveNoToken(t *testing.T) {
	t.Parallel()
	server := serve(t, "--api-keys", fileOf(t, keyOf("ann", "ann-key")))
	b := profiles(t, 1)[0]
	for name, c := range map[string]struct{ function, code, why string }{
		"throws":        {"() => { throw new Error('the sign-in service is away') }", "acquire-timeout", "the sign-in service is away"},
		"rejects":       {"() => Promise.reject()", "acquire-timeout", "server.token failed"},
		"never settles": {"() => new Promise(() => undefined)", "acquire-timeout", "server.token has not settled"},
		"is empty":      {"() => ''", "not-allowed", "server.token must return"},
		"is a function": {"() => () => 'ann-key'", "not-allowed", "server.token must return"},
		"is undefined":  {"() => undefined", "not-allowed", "server.token must return"},
		"has a newline": {"() => 'ann-key\\n'", "not-allowed", "server.token must return"},
	} {
		for _, host := range []string{"worker", "page"} {
			t.Run(name+" "+host, func(t *testing.T) {
				tab := server.signedIn(t, b, host)
				tab.MustEval("token = "+c.function+"; null", nil)
				refused := browser.Get[failed](tab, "await failure(hf.acquireProjectLock({ifAvailable: true, path: [crypto.randomUUID()]}))")
				assert.Equal(t, c.code, refused.Code)
				assert.Contains(t, refused.Message, c.why)
				tab.Close()
			})
		}
	}
	tab := b.Open(t, server.URL+"/room.html")
	begin(tab, "")
	for _, wrong := range []string{"'ann-key'", "null", "{}"} {
		refused := browser.Get[failed](tab, "await failure(start({server: {url: location.origin, token: "+wrong+"}}))")
		assert.Equal(t, "invalid-argument", refused.Code)
		assert.Contains(t, refused.Message, "server.token")
	}
}
