package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// demoTab opens the demo under a name.
func demoTab(t *testing.T, w world, name string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/locks.html"))
	kind(tab, "free", "held")
	tab.MustEval(fmt.Sprintf(`
		const $ = id => document.getElementById(id)
		const kind = () => $('status').dataset.kind
		const names = id => [...$(id).querySelectorAll('.name')].map(e => e.firstChild.textContent.trim())
		const timeline = () => [...$('timeline').children].map(e => e.dataset.type).reverse()
		$('name').value = '%s'; $('name').dispatchEvent(new Event('input', {bubbles: true})); $('name').dispatchEvent(new Event('change', {bubbles: true}))`, name), nil)
	tab.WaitFor("document.title.endsWith('"+name+"') && ['free', 'held'].includes(kind())", browser.Limit)
	return tab
}

// press clicks a button as soon as that is possible.
func press(tab *browser.Tab, button string) {
	tab.WaitFor(fmt.Sprintf("!$(%q).disabled && $(%[1]q).ariaDisabled !== 'true' && ($(%[1]q).click(), true)", button), browser.Limit)
}

// kind waits until the status is one of these.
func kind(tab *browser.Tab, kinds ...string) {
	tab.WaitFor(fmt.Sprintf("%q.split(' ').includes(document.getElementById('status').dataset.kind)", strings.Join(kinds, " ")), browser.Limit)
}

// The demo shows in two tabs who holds and who waits, and hands over, using only what a user can press and read.
func TestDemo(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	ann := demoTab(t, w, "Ann")
	ben := demoTab(t, w, "Ben")

	press(ann, "acquire")
	kind(ann, "holding")
	kind(ben, "held")
	ben.WaitFor("names('holders').join() === 'Ann' && /since \\d/.test($('holders').textContent)", browser.Limit)
	assert.Contains(t, browser.Get[string](ben, "$('answer').textContent"), "Held by Ann")
	assert.Equal(t, []string{"lock:attempt", "lock:acquired"}, browser.Get[[]string](ann, "timeline().filter(type => type !== 'lock:renewed')"), "one line for the lease and its heartbeat")

	press(ben, "acquire")
	kind(ben, "waiting")
	ann.WaitFor("names('waiters').join() === 'Ben' && /since \\d/.test($('waiters').textContent)", browser.Limit)
	ben.WaitFor("names('waiters').join() === 'Ben'", browser.Limit)
	cleo := demoTab(t, w, "Cleo")
	press(cleo, "acquire")
	kind(cleo, "waiting")
	ann.WaitFor("names('waiters').join() === 'Ben,Cleo'", browser.Limit)
	cleo.WaitFor("/2(nd)?/.test($('explain').textContent + $('facts').textContent + $('dial-value').textContent)", browser.Limit)

	screenshots(t, map[string]*browser.Tab{"holding": ann, "waiting": cleo})

	press(ann, "renew")
	ann.WaitFor("timeline().some(t => t.includes('renewed'))", browser.Limit)
	press(ann, "release")
	kind(ben, "holding")
	kind(ann, "held")
	ann.WaitFor("names('holders').join() === 'Ben' && names('waiters').join() === 'Cleo'", browser.Limit)

	press(ann, "takeover")
	kind(ann, "holding")
	kind(ben, "readonly")
	ben.WaitFor("timeline().some(t => t.includes('readonly-entered'))", browser.Limit)
	kind(cleo, "waiting")
	screenshots(t, map[string]*browser.Tab{"readonly": ben})

	ann.Close()
	kind(cleo, "holding")
	for _, tab := range []*browser.Tab{ben, cleo} {
		tab.Quiet()
	}
}

// screenshots stores pictures of the tabs if the tests run with -artifacts.
func screenshots(t *testing.T, tabs map[string]*browser.Tab) {
	t.Helper()
	for name, tab := range tabs {
		for _, width := range []int{1200, 360} {
			for scheme, dark := range map[string]bool{"light": false, "dark": true} {
				tab.Screenshot(filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), width, 900, dark)
			}
		}
		tab.Quiet()
	}
}

// On a phone no content is outside the screen, whatever the card shows.
func TestDemoFitsPhone(t *testing.T) {
	t.Parallel()
	w := open(t, quick)
	tab := demoTab(t, w, "A name as long as the field lets one type")
	fits := func(what string) {
		t.Helper()
		assert.LessOrEqual(t, browser.Get[int](tab, "document.documentElement.scrollWidth - innerWidth"), 0, what)
	}
	tab.Resize(360, 740)
	fits("free")
	press(tab, "acquire")
	kind(tab, "holding")
	tab.MustEval("for (const d of document.querySelectorAll('details')) d.open = true", nil)
	fits("holding, everything unfolded")
	tab.Quiet()
}
