package e2e

import (
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

// Each attack on unsaved text runs in each setup of its form.
func TestNothingLost(t *testing.T) {
	form := endings.Short
	if *full {
		form = endings.Full
	}
	for _, a := range endings.Attacks {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			options := quick
			if a.Needs == endings.Freezing || a.Needs == endings.Caching {
				options = whole
			}
			a.Play(t, form, func(t *testing.T) endings.Stage {
				if a.Server {
					return openCutOff(t, options)
				}
				return cutOff{world: open(t, options)}
			})
		})
	}
}

// cutOff is a site with an optional server that a test can disconnect. The pages themselves stay reachable.
type cutOff struct {
	world
	wire    *serving.Wire
	options browser.Options
}

func openCutOff(t *testing.T, options browser.Options) cutOff {
	t.Helper()
	server := serving.Run(t, "--data-dir", t.TempDir(), "--lock-ttl", endings.LockTTL, "--rate", "0", "--new-rate", "0", "--log-level", "error")
	wire := serving.NewWire(t, "tcp", server.Address())
	mux := pages(t, siteDir)
	mux.Handle("/api/", wire.Proxy())
	return cutOff{world{browser.Start(t, options), browser.Serve(t, mux)}, wire, options}
}

func (c cutOff) Open(t *testing.T, holdfast string) endings.Tab {
	t.Helper()
	tab := c.world.Open(t, c.URL("/blank"))
	begin(tab, holdfast)
	return attackedTab{tab, c.Server}
}

func (c cutOff) WaitStored(t *testing.T, word string) {
	t.Helper()
	c.Browser.WaitStored(t, word, browser.Limit)
}

func (c cutOff) Restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	c.Browser.Restart(t, signal)
}

func (c cutOff) Cut(off bool) { c.wire.Cut(off) }

func (c cutOff) Other(t *testing.T) endings.Stage {
	t.Helper()
	return cutOff{world{browser.Start(t, c.options), c.Server}, c.wire, c.options}
}

// attackedTab is a tab for an attack. Methods of the harness fail the test on their own.
type attackedTab struct {
	*browser.Tab
	server *browser.Server
}

func (tab attackedTab) Run(statements string) error { return tab.Eval("{ "+statements+"\n} null", nil) }

func (tab attackedTab) Prepare(endings.Ending) error {
	_, err := tab.Renderer()
	return err
}

func (tab attackedTab) End(how endings.Ending) error {
	how.End(tab.Tab)
	return nil
}

func (tab attackedTab) Navigate(path string) error {
	tab.Tab.Navigate(tab.server.URL(path))
	return nil
}

func (tab attackedTab) Freeze(on bool) error {
	if on {
		tab.Tab.Freeze()
	} else {
		tab.Resume()
	}
	return nil
}

func (tab attackedTab) Suspend(on bool) error {
	if on {
		tab.Tab.Suspend()
	} else {
		tab.Continue()
	}
	return nil
}

func (tab attackedTab) Leave() { tab.Spare() }

// attacked opens a tab that edits, or will edit, and that can report where a word is.
func (w world) attacked(t *testing.T, holdfast, options string) *browser.Tab {
	t.Helper()
	tab := w.Open(t, w.URL("/blank"))
	begin(tab, holdfast)
	tab.MustEval(endings.Script, nil)
	beginEditing(tab, options)
	return tab
}
