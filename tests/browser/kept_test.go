package browser_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Run(m)) }

// A browser serves one test after another. It is like new, except for the storage of other origins.
func TestBrowserIsLikeNewForTheNextTest(t *testing.T) {
	t.Parallel()
	options := browser.Options{Shell: true, Flags: []string{"lang=de"}} // no other test uses these options
	var first *browser.Browser
	t.Run("first", func(t *testing.T) {
		l := openLab(t, options)
		first = l.Browser
		l.tab(t, "a").MustEval("take('x')", nil)
		l.tab(t, "b").Crash()
	})
	t.Run("second", func(t *testing.T) {
		l := openLab(t, options)
		assert.Same(t, first, l.Browser)
		assert.Empty(t, l.Tabs())
		tab := l.tab(t, "a")
		assert.Zero(t, browser.Get[int](tab, "(await navigator.locks.query()).held.length"))
		tab.Quiet()
		l.tab(t, "b").Suspend()
	})
	t.Run("after a suspended tab", func(t *testing.T) {
		assert.NotSame(t, first, browser.Start(t, options))
	})
}
