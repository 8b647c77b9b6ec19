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

// kept are the browsers that no test uses at present.
var kept keeper

type keeper struct {
	open bool // within Run: no test has begun before
	mu   sync.Mutex
	idle []*Browser
}

// Run runs the tests of a package and returns its exit code; its TestMain calls it. Browsers serve one test after the
// other: starting one costs as much as two tabs. A test still has a browser for itself, without a tab, but not without
// what servers of tests before it may have had stored; each has a server of its own, and an origin with it. A browser
// whose test failed, or left a tab suspended, is not used again.
func Run(m *testing.M) int {
	kept.open = true
	code := m.Run()
	if err := kept.end(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return max(code, 1)
	}
	return code
}

// take returns a browser of these options that was kept, or nil.
func (k *keeper) take(options Options) *Browser {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.idle, func(b *Browser) bool { return reflect.DeepEqual(b.options, options) })
	if i < 0 {
		return nil
	}
	b := k.idle[i]
	k.idle = slices.Delete(k.idle, i, i+1)
	return b
}

// put closes the tabs of a browser and keeps it, or reports that it is of no more use.
func (k *keeper) put(b *Browser) bool {
	if !k.open || !b.clear() {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, b)
	return true
}

// end ends them, when all tests have ended.
func (k *keeper) end() (err error) {
	for _, b := range k.idle {
		err = errors.Join(err, b.end())
	}
	return err
}

// clear closes all tabs, and reports whether nothing of them is left.
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
