package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const second = time.Second

var (
	project = []place{{}}
	below   = []place{{Path: []string{"a", "b"}}}
	beside  = []place{{Path: []string{"a", "c"}}}
	above   = []place{{Path: []string{"a"}}}
	shared  = []place{{Path: []string{"a"}, Shared: true}}
)

func TestExclusion(t *testing.T) {
	for _, c := range []struct {
		one, other []place
		want       bool
	}{
		{project, project, true}, {project, below, true}, {above, below, true}, {below, below, true},
		{below, beside, false}, {shared, shared, false}, {shared, above, true}, {shared, below, false},
	} {
		one, other := request{Domain: "d", Places: c.one}, request{Domain: "d", Places: c.other}
		assert.Equal(t, c.want, one.excludes(other, 0, 0), "%v %v", c.one, c.other)
		assert.Equal(t, c.want, other.excludes(one, 0, 0), "%v %v", c.other, c.one)
	}
	two := request{Domain: "d", Places: above, Slots: 2}
	assert.True(t, two.excludes(two, 1, 1))
	assert.False(t, two.excludes(two, 0, 1))
	assert.False(t, two.excludes(request{Domain: "e", Places: above}, 0, 0))
}

// take is a whole grant: requested, granted, and confirmed for the reported remaining time.
func take(l *ledger, at time.Duration, client string, token int64, left time.Duration, places []place) {
	l.ask(at, client, request{Domain: "d", Places: places})
	l.granted(at, client, "r", token, 0, true)
	l.confirm(at, client, left)
}

func TestLedgerFindsTwoHoldersAtOnce(t *testing.T) {
	l := newLedger()
	take(l, 1*second, "a", 1, 4*second, project)
	take(l, 2*second, "b", 2, 4*second, below)
	assert.Empty(t, l.violations, "b may have learnt of it late")
	l.confirm(3*second, "b", 3*second)
	require.Len(t, l.violations, 1)
	assert.Contains(t, l.violations[0], "double holder")
	l.confirm(4*second, "a", 3*second)
	assert.Len(t, l.violations, 1, "one event is reported")
}

// A holder whose lock was stolen before it could report its lease has the lower token.
func TestStolenBeforeItsReport(t *testing.T) {
	for name, c := range map[string]struct {
		token int64
		want  int
	}{"lower": {1, 0}, "higher": {3, 1}} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.ask(1*second, "stolen", request{Domain: "d", Places: below})
			l.ask(2*second, "stealer", request{Domain: "d", Places: below, Steal: true})
			l.granted(3*second, "stealer", "r", 2, 0, true)
			l.granted(4*second, "stolen", "r", c.token, 0, true)
			l.confirm(5*second, "stealer", 4*second)
			l.confirm(5*second, "stolen", 4*second)
			assert.Len(t, l.violations, c.want)
		})
	}
}

func TestLedgerAcceptsOneHolderAfterTheOther(t *testing.T) {
	for name, end := range map[string]func(*ledger){
		"left":      func(l *ledger) { l.left(2*second, "a", second) },
		"ended":     func(l *ledger) { l.ended(2*second, "a") },
		"clock set": func(l *ledger) { l.skew(2*second, "a", "d") },
		"stolen":    func(l *ledger) { l.ask(2*second, "stealer", request{Domain: "d", Places: above, Steal: true}) },
		"run out":   func(l *ledger) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			left := 4 * second
			if name == "run out" {
				left = 2 * second
			}
			take(l, 1*second, "a", 1, left, project)
			end(l)
			take(l, 3*second, "b", 2, 4*second, project)
			assert.False(t, l.confirm(4*second, "a", -1), "a client that wakes late is refused")
			l.confirm(4*second, "b", 4*second)
			assert.Empty(t, l.violations)
		})
	}
}

func TestLateReportMakesNoHolder(t *testing.T) {
	l := newLedger()
	l.ask(1*second, "slept", request{Domain: "d", Places: project})
	take(l, 6*second, "b", 2, 4*second, project)
	l.granted(7*second, "slept", "r", 1, 0, true) // the lease has expired meanwhile
	assert.False(t, l.confirm(8*second, "slept", -1))
	assert.True(t, l.confirm(8*second, "b", 2*second))
	assert.Empty(t, l.violations)

	// A client whose lease continues is a holder.
	l.ask(1*second, "awake", request{Domain: "d", Places: project})
	l.granted(8*second, "awake", "r", 1, 0, true)
	l.confirm(9*second, "awake", 3*second)
	l.confirm(10*second, "b", 2*second)
	assert.NotEmpty(t, l.violations)
}

func TestTokensRise(t *testing.T) {
	l := newLedger()
	take(l, 1*second, "a", 7, second, project)
	l.left(2*second, "a", second)
	take(l, 3*second, "b", 7, second, project)
	require.Len(t, l.violations, 1)
	assert.Contains(t, l.violations[0], "not above 7")

	// A clock that is set back lowers the tokens that come from it, but not the counted ones.
	l = newLedger()
	take(l, 1*second, "a", 7, second, project)
	l.left(2*second, "a", second)
	l.skew(2*second, "", "d")
	l.ask(3*second, "b", request{Domain: "d", Places: below})
	l.granted(3*second, "b", "r", 5, 0, false)
	l.left(4*second, "b", second)
	assert.Empty(t, l.violations)
	take(l, 5*second, "c", 6, second, project)
	assert.Len(t, l.violations, 1)
}

func TestStealByDeadClientMayStillTakeEffect(t *testing.T) {
	l := newLedger()
	l.ask(1*second, "stealer", request{Domain: "d", Places: project, Steal: true})
	l.ended(2*second, "stealer")
	take(l, 3*second, "stolen", 1, 4*second, project)
	take(l, 4*second, "next", 2, 4*second, project)
	l.confirm(5*second, "next", 4*second)
	assert.Empty(t, l.violations, "the steal may have taken effect")
	l.left(6*second, "next", second)
	take(l, 7*second, "c", 3, 4*second, project)
	take(l, 8*second, "d", 4, 4*second, project)
	l.confirm(9*second, "d", 2*second)
	assert.Len(t, l.violations, 1)
}

func TestHoldersLeftBehind(t *testing.T) {
	l := newLedger()
	l.ask(1*second, "a", request{Domain: "d", Places: project})
	l.forgotten(30*second, time.Minute)
	assert.Empty(t, l.violations)
	l.forgotten(90*second, time.Minute)
	assert.Len(t, l.violations, 1)
}

func TestLostSavesAreFound(t *testing.T) {
	a := newArchive()
	a.acknowledged("doc", "ann", 1, []string{"ann:1", "ann:2"})
	a.loaded("doc", "ben", 2, "ann:1\nann:2\n")
	a.acknowledged("doc", "ben", 2, []string{"ben:1"})
	a.loaded("other", "ben", 9, "")
	a.loaded("doc", "ann", 2, "ann:1\nann:2\n") // it began before ben had saved
	assert.Empty(t, a.violations)
	a.loaded("doc", "ann", 3, "ann:1\nben:1\n")
	require.Len(t, a.violations, 1)
	assert.Contains(t, a.violations[0], "ann:2")
	a.loaded("doc", "ben", 4, "ann:1\nben:1\nben:1\n")
	assert.Len(t, a.violations, 2, "the same line is in the list twice")
}

func TestLedgerFindsLateWrites(t *testing.T) {
	a := newArchive()
	a.loaded("doc", "ann", 1, "")
	assert.False(t, a.superseded("doc", 1))
	a.loaded("doc", "ben", 2, "")
	a.loaded("other", "eve", 9, "")
	assert.True(t, a.superseded("doc", 1))
	assert.False(t, a.superseded("doc", 2))
	assert.False(t, a.superseded("doc", 3), "nothing is known of it")
	a.writtenLate("doc", []string{"ann:late"})
	a.read("doc", "ben", "ann:1\n")
	assert.Empty(t, a.violations)
	a.loaded("doc", "ann", 3, "ann:late\n")
	a.read("doc", "ben", "ann:late\n")
	require.Len(t, a.violations, 1, "one event is reported")
	assert.Contains(t, a.violations[0], "ann:late")
}

func TestTheSeedSaysWhatHappens(t *testing.T) {
	one, again := schedule(7, time.Hour, second), schedule(7, time.Hour, second)
	assert.Equal(t, one, again)
	assert.NotEqual(t, one, schedule(8, time.Hour, second))
	happened := map[string]bool{}
	for _, f := range one {
		happened[f.Kind] = true
	}
	assert.Len(t, happened, len(kinds), "everything happens")
}

// A report out of order would be treated as repeated and be ignored.
func TestReportsOutOfOrderAreFound(t *testing.T) {
	c := newChecker()
	c.enter("a", "d")
	for _, number := range []int{1, 1, 2} { // one of them is repeated
		c.hear(message{Client: "a", What: "ask", Number: number})
	}
	assert.Empty(t, c.found())
	assert.Equal(t, 2, c.count["leases asked for"])
	c.hear(message{Client: "a", What: "note", Number: 4})
	assert.Equal(t, []string{`a told "note" out of turn: 4 after 2`}, c.found())
}
