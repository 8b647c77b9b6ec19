package browser

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// kept are the browsers that no test uses now.
var kept browserPool

type browserPool struct {
	open bool // within Run: set before the first test
	mu   sync.Mutex
	idle []*Browser
}

// Run runs the tests of a package and returns its exit code. TestMain calls it. Browsers serve one test after
// another, because starting one costs as much as two tabs. A test still has a browser for itself, without tabs. But
// the browser may contain storage of the servers of earlier tests; each server has its own origin. A browser is not
// used again after its test failed or left a tab suspended.
func Run(m *testing.M) int {
	kept.open = true
	code := m.Run()
	if err := kept.end(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return max(code, 1)
	}
	return code
}

// take returns a kept browser with these options, or nil.
func (p *browserPool) take(options Options) *Browser {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(b *Browser) bool { return reflect.DeepEqual(b.options, options) })
	if i < 0 {
		return nil
	}
	b := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return b
}

// put closes the tabs of a browser and keeps it. It returns false if the browser cannot be used again.
func (p *browserPool) put(b *Browser) bool {
	if !p.open || !b.clear() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, b)
	return true
}

// end ends the kept browsers after all tests.
func (p *browserPool) end() (err error) {
	for _, b := range p.idle {
		err = errors.Join(err, b.end())
	}
	return err
}

// clear closes all tabs, and reports whether all of them are gone.
func (b *Browser) clear() bool {
	for _, tab := range b.Tabs() {
		tab.mu.Lock()
		suspended := tab.suspended
		tab.mu.Unlock()
		if suspended || tab.close() != nil {
			return false
		}
	}
	return true
}
