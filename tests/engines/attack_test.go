package engines

import (
	"errors"
	"flag"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
	"github.com/holdfast-dev/holdfast/tests/endings"
	"github.com/holdfast-dev/holdfast/tests/serving"
)

var full = flag.Bool("full", false, "every attack in every setup, 20 rounds each")

// few are the attacks that run without -full: one for each way in which text could be lost.
var few = []string{"teardown", "handover", "typed before the content is loaded", "conflict", "cut off", "end of the browser"}

// The attacks on unsaved text run in the engines that tests/e2e does not use, if they have file storage.
func TestNothingLost(t *testing.T) {
	t.Parallel()
	form := endings.Brief
	if *full {
		form = endings.Full
	}
	for _, e := range All {
		if e.Name == "Chromium" || Known[e.Name]["OPFS sync access handles"] == "no" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			engine := launch(t, e.Start, Options{})
			server := serving.Run(t, "--data-dir", t.TempDir(), "--lock-ttl", endings.LockTTL, "--rate", "0", "--new-rate", "0", "--log-level", "error")
			attack := func(t *testing.T, a endings.Attack) {
				if why := Limits[e.Name][a.Needs]; why != "" {
					t.Skipf("%s cannot %s: %s", e.Name, a.Needs, why)
				}
				wire := serving.NewWire(t, "tcp", server.Address())
				site := Serve(t, siteFolder, wire.Proxy()) // its own origin: the attacks fill and empty its storage
				a.Play(t, form, func(*testing.T) endings.Stage { return &attacked{engine, e.Start, site, wire} })
			}
			for _, a := range endings.Attacks {
				if !*full && !slices.Contains(few, a.Name) {
					continue
				}
				t.Run(a.Name, func(t *testing.T) { attack(t, a) })
			}
		})
	}
}

// attacked is an engine for attacks.
type attacked struct {
	engine Engine
	start  func(testing.TB, Options) (Engine, error)
	site   *Site
	wire   *serving.Wire
}

func (a *attacked) Open(t *testing.T, holdfast string) endings.Tab {
	t.Helper()
	tab, err := a.engine.Open(a.site.URL(BlankPage))
	require.NoError(t, err)
	p := &attackedTab{Tab: tab, stage: a}
	if holdfast != "" {
		require.NoError(t, p.Run("await start("+holdfast+")"))
	}
	return p
}

func (a *attacked) WaitStored(t *testing.T, word string) {
	t.Helper()
	require.Eventually(t, func() bool { return a.engine.Stored(word) }, browser.Limit, 10*time.Millisecond, "%q is in no file of the browser", word)
}

func (a *attacked) Restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	require.NoError(t, a.engine.Restart(signal))
}

func (a *attacked) Cut(off bool) { a.wire.Cut(off) }

func (a *attacked) Other(t *testing.T) endings.Stage {
	t.Helper()
	return &attacked{launch(t, a.start, Options{}), a.start, a.site, a.wire}
}

// attackedTab is a tab for an attack.
type attackedTab struct {
	Tab
	stage *attacked
	gone  bool
}

func (p *attackedTab) Run(statements string) error { return Eval(p.Tab, statements, nil) }

func (p *attackedTab) Eval(expression string, out any) error {
	return Eval(p.Tab, "return "+expression, out)
}

func (p *attackedTab) Wait(expression string, limit time.Duration) error {
	return Wait(p.Tab, expression, limit)
}

func (p *attackedTab) Prepare(endings.Ending) error { return nil }

func (p *attackedTab) End(how endings.Ending) error {
	switch how.Name {
	case "closed":
		p.gone = true
		return p.Close()
	case "reloaded":
		return p.Reload()
	case "navigated":
		return p.Navigate(BlankPage + "?elsewhere")
	case "crashed":
		p.gone = true
		_, err := p.Kill()
		return errors.Join(err, p.Close())
	}
	return errors.ErrUnsupported
}

func (p *attackedTab) Navigate(path string) error { return p.Tab.Navigate(p.stage.site.URL(path)) }

func (p *attackedTab) Freeze(bool) error { return errors.ErrUnsupported }

// Leave closes a tab if it is still open.
func (p *attackedTab) Leave() {
	if !p.gone {
		_ = p.Close() // an error if the browser was restarted
	}
}
