package engines

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// Every error of a page or a worker is recorded, so that the absence of errors in other scenarios has a meaning.
func testControls(s *stage) {
	s.expected = append(s.expected, "planted")
	p := s.blank(s.site.URL(BlankPage))
	err := Eval(p.tab, "throw Object.assign(new TypeError('no'), {code: 'denied'})", nil)
	var thrown *JSError
	require.ErrorAs(s, err, &thrown)
	assert.Equal(s, []string{"TypeError", "no", "denied"}, []string{thrown.Name, thrown.Message, thrown.Code})
	require.ErrorContains(s, Wait(p.tab, "1 > 2", 20*time.Millisecond), "not within")

	p.do(`console.error("planted: console")
		setTimeout(() => { throw new RangeError("planted: exception") })
		setTimeout(() => { Promise.reject(new RangeError("planted: rejection")) })
		new Worker("` + shoutPath + `")`)
	for _, planted := range []string{"console", "exception", "rejection", "worker console", "worker exception"} {
		if why := Limits[s.engineName]["hear a "+planted]; why != "" {
			s.Logf("%s is not heard: %s", planted, why)
			continue
		}
		heard := func() bool {
			all := append(s.engine.Errors()[s.seen:], get[[]string](p, "problems")...)
			return strings.Contains(strings.Join(all, "\n"), "planted: "+planted)
		}
		assert.Eventually(s, heard, browser.Limit, 5*time.Millisecond, planted)
	}
}
