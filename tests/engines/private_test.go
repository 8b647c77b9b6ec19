package engines

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/endings"
)

// In a private window of Firefox, a page has Web Locks but no file storage. A lease then works without its record and
// reports that, and AutoSave stores in IndexedDB. A lock over a file is refused with a message that tells the user what
// to do.
func TestPrivateWindow(t *testing.T) {
	t.Parallel()
	site := Serve(t, siteFolder)
	engine := launch(t, startFirefox, Options{Private: true})
	for _, host := range []string{"worker", "page"} {
		t.Run(host, func(t *testing.T) {
			s := &stage{T: t, engine: engine, engineName: "Firefox", site: site, host: host, root: "private-" + host, took: map[string]float64{}}
			s.play(func(s *stage) {
				p := s.open()
				assert.Contains(s, get[string](p, "await navigator.storage.getDirectory().then(String, String)"), "SecurityError", "without this the test proves nothing")
				p.do("lease = await hf.acquireProjectLock(); await lease.release()")
				assert.Equal(s, []string{"attempt", "warning", "acquired", "renew-scheduled", "release-requested", "released"}, get[[]string](p, "types()"))
				assert.Equal(s, "fallback-degraded", get[string](p, "events[1].warning"))
				file := s.files()
				refused := get[problem](file, "await failure(hf.acquireProjectLock())")
				assert.Equal(s, "unsupported", refused.Code)
				assert.Contains(s, refused.Message, "private windows")
				assert.Equal(s, []string{"attempt", "error", "readonly-entered"}, get[[]string](file, "types()"))
				s.savesItself("indexeddb")
				s.root += "-drafts"
				s.keepsDrafts(endings.StoresWord, "storesWord")
			})
		})
	}
}
