package locktest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/lock/locktest"
)

// A contender steals the lock and gives up; a third one is granted the lock after it. In whichever order the three
// report, nothing was broken.
func TestWitnessOfAStealThatFailed(t *testing.T) {
	for name, report := range map[string]func(w *locktest.Witness){
		"the victim entered first": func(w *locktest.Witness) {
			w.Enter("victim", 1)
			w.Fail("stealer")
			assert.True(t, w.Enter("next", 3))
		},
		"the victim enters last": func(w *locktest.Witness) {
			w.Fail("stealer")
			w.Enter("next", 3)
			assert.False(t, w.Enter("victim", 1))
		},
		"the victim enters after the failure": func(w *locktest.Witness) {
			w.Fail("stealer")
			w.Enter("victim", 1)
			assert.True(t, w.Enter("next", 3))
		},
		"the failure comes last": func(w *locktest.Witness) {
			w.Enter("victim", 1)
			assert.True(t, w.Enter("next", 3))
			w.Fail("stealer")
		},
		"the victim enters after the next, and then the failure comes": func(w *locktest.Witness) {
			w.Enter("next", 3)
			assert.False(t, w.Enter("victim", 1))
			w.Fail("stealer")
		},
		"the stealer ends": func(w *locktest.Witness) {
			w.End("stealer")
			w.Enter("next", 3)
			assert.False(t, w.Enter("victim", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := locktest.NewWitness()
			w.Begin("victim", false)
			w.Begin("stealer", true)
			w.Begin("next", false)
			report(w)
			assert.Empty(t, w.Violations())
		})
	}
}

// Only who asked before a steal failed may have been stolen from, and a request that does not steal excuses nobody.
func TestWitnessFindsDoubleHolders(t *testing.T) {
	for name, report := range map[string]func(w *locktest.Witness){
		"a contender that fails does not steal": func(w *locktest.Witness) {
			w.Begin("a", false)
			w.Begin("quiet", false)
			w.Begin("b", false)
			w.Enter("a", 1)
			w.Fail("quiet")
			w.Enter("b", 2)
		},
		"after a steal that failed": func(w *locktest.Witness) {
			w.Begin("stealer", true)
			w.Fail("stealer")
			w.Begin("a", false)
			w.Begin("b", false)
			w.Enter("a", 1)
			w.Enter("b", 2)
		},
		"after a steal that succeeded": func(w *locktest.Witness) {
			w.Begin("stealer", true)
			w.Begin("a", false)
			w.Enter("stealer", 1)
			w.Enter("a", 2)
		},
		"a lower token": func(w *locktest.Witness) {
			w.Begin("a", false)
			w.Begin("b", false)
			w.Enter("a", 2)
			w.Leave("a")
			w.Enter("b", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := locktest.NewWitness()
			report(w)
			assert.Len(t, w.Violations(), 1)
		})
	}
}
