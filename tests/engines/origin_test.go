package engines

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// An insecure origin has no Web Locks: acquiring reports that at once.
func testInsecure(s *stage) {
	s.expected = append(s.expected, "Cross-Origin-Opener-Policy") // it is ignored there
	p := s.blank(s.site.InsecureURL(BlankPage))
	require.Equal(s, []bool{false, false}, get[[]bool](p, "[isSecureContext, 'locks' in navigator]"))
	p.do("await start(" + s.options("") + ")")
	got := get[problem](p, "await failure(hf.acquireProjectLock({timeoutMs: 10000}))")
	assert.Contains(s, []string{"web-lock-unsupported", "unsupported"}, got.Code, "%+v", got)
	assert.Less(s, got.Took, browser.Prompt)
	assert.Greater(s, len(got.Message), len(got.Code)+10, "the event has the reason")
	assert.Equal(s, 1, get[int](p, "count('readonly-entered')"))
	assert.Equal(s, "readonly-entered", get[string](p, "types().at(-1)"))
	p.do("await hf.close()")
}

// All pages have the policy of the demo. A complete run violates nothing, in the page or its workers. A planted
// violation is reported.
func testPolicy(s *stage) {
	s.expected = append(s.expected, "(?i)content.security.policy|policy: |inline")
	before := len(s.site.Violations())
	p := s.open()
	p.do("lease = await hf.acquireProjectLock({heartbeatIntervalMs: 50, ttlMs: 20_000})")
	p.wait("count('renewed') >= 2")
	p.do("await lease.release(); await hf.close()")
	assert.Empty(s, get[[]string](p, "problems"))

	p.do("document.head.append(Object.assign(document.createElement('script'), {text: 'problems.push(\"ran\")'}))")
	require.Eventually(s, func() bool { return len(s.site.Violations()) > before }, browser.Limit, 5*time.Millisecond, "the control is reported")
	for _, report := range s.site.Violations()[before:] {
		assert.True(s, strings.Contains(report, "inline"), report)
	}
	assert.NotContains(s, get[[]string](p, "problems"), "ran")
}

// A server that does not know the Wasm type makes loading slower, but not impossible.
func testMIME(s *stage) {
	p := s.blank(s.site.URL(BlankPage))
	p.do("await start(" + s.options("baseURL: '"+OctetBase+"'") + ")")
	assert.Equal(s, "application/octet-stream", get[string](p, "(await fetch('"+OctetBase+"holdfast.wasm')).headers.get('content-type')"))
	p.do("await (await hf.acquireProjectLock()).release()")
}
