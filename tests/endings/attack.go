package endings

import (
	"fmt"
	"slices"
	"testing"
)

// A Setup is a host of the runtime with a strategy. The strategy "remote" is for documents on a server.
type Setup struct{ Host, Strategy string }

func (s Setup) String() string { return s.Strategy + " " + s.Host }

// holdfast returns the options of a user's Holdfast in a project.
func (s Setup) holdfast(root, owner string) string {
	lies := "strategy: '" + s.Strategy + "'"
	if s.Strategy == "remote" {
		lies = "server: {url: location.origin}"
	}
	return fmt.Sprintf("{host: '%s', %s, root: '%s', ownerName: '%s'}", s.Host, lies, root, owner)
}

// An Attack is a way in which a page could lose its unsaved text.
type Attack struct {
	Name   string
	Needs  string // the ability that a browser's driver needs; "" for none
	Server bool   // the documents are on a server, and the pages can be disconnected from it
	play   func(s *series)
}

// The abilities of a driver that an attack may need.
const (
	Freezing   = "freeze a page"
	Suspending = "suspend a page"
	Caching    = "keep a page in the back/forward cache"
)

// A Form is the extent of an attack.
type Form int

// Forms of an attack.
const (
	Brief Form = iota // in one setup, with one of its variants and one ending, which differ between attacks
	Short             // in two setups, which cover both hosts and both strategies; the variants are shared out among them, one or two rounds each
	Full              // in each setup, with twenty rounds
)

// A series is an attack in one setup, with the number of rounds of the form.
type series struct {
	*testing.T
	Stage
	Setup
	form        Form
	number      int // of the attack
	turn, among int // this series plays each variant whose number, modulo among, is turn
}

// Attacks lists all attacks.
var Attacks = []Attack{
	{"teardown", "", false, teardown},
	{"handover", "", false, leaveDuringHandover},
	{"stolen lock", "", false, stolenLock},
	{"expired lease", Suspending, false, expiredLease},
	{"crash after freeze", Freezing, false, crashAfterFreeze},
	{"back/forward cache", Caching, false, backForwardCache},
	{"another text over the draft", "", false, anotherText},
	{"typed before the content is loaded", "", false, typedBeforeContent},
	{"page ends before the content is loaded", "", false, endsBeforeContent},
	{"call before the content is loaded", "", false, callBeforeContent},
	{"page ends when it may edit", "", false, endsWhenItMayEdit},
	{"conflict", "", false, conflict},
	{"full localStorage", "", false, fullLocalStorage},
	{"large document", "", false, largeDocument},
	{"cut off", "", true, cutOff},
	{"both sides changed", "", true, bothSidesChanged},
	{"server and browser", "", true, neverMix},
	{"end of the browser", "", false, endOfBrowser},
}

// Play plays an attack in the hosts and with the strategies of the form.
func (a Attack) Play(t *testing.T, form Form, stage func(*testing.T) Stage) {
	number := slices.IndexFunc(Attacks, func(other Attack) bool { return a.Name == other.Name })
	setups := []Setup{{"worker", "web-lock"}, {"page", "file-lock"}, {"worker", "file-lock"}, {"page", "web-lock"}}
	if a.Server {
		setups = []Setup{{"worker", "remote"}, {"page", "remote"}}
	}
	switch form {
	case Brief:
		setups = setups[number%2:][:1]
	case Short:
		setups = setups[:2]
	}
	a.PlayIn(t, form, setups, stage)
}

// PlayIn plays an attack in the given setups.
func (a Attack) PlayIn(t *testing.T, form Form, setups []Setup, stage func(*testing.T) Stage) {
	number := slices.IndexFunc(Attacks, func(other Attack) bool { return a.Name == other.Name })
	among := 1
	if form == Short {
		among = len(setups)
	}
	for i, setup := range setups {
		turn := (i + number) % among
		t.Run(setup.String(), func(t *testing.T) { a.play(&series{t, stage(t), setup, form, number, turn, among}) })
	}
}

// rounds plays the rounds of an attack, each in its own project.
func (s *series) rounds(short, full int, round func(*Scene)) {
	count := map[Form]int{Brief: 1, Short: short, Full: full}[s.form]
	for n := range count {
		s.Run(fmt.Sprint("round ", n), func(t *testing.T) { round(&Scene{t, s.Stage, s.Setup, n, name(t)}) })
	}
}

// parts plays the variants of an attack. The brief form plays only one of them.
func parts[T any](s *series, variants []T, name func(T) string, play func(*series, T)) {
	if s.form == Brief {
		variants = variants[s.number%len(variants):][:1]
	}
	each(s, variants, name, play)
}

// each plays those of the given variants of an attack whose turn it is. The variants of a variant take turns in the
// same way, so that each setup has others of them.
func each[T any](s *series, variants []T, name func(T) string, play func(*series, T)) {
	for i, variant := range variants {
		if i%s.among == s.turn {
			s.Run(name(variant), func(t *testing.T) { play(&series{t, s.Stage, s.Setup, s.form, s.number / 2, s.turn, s.among}, variant) })
		}
	}
}

// yesOrNo plays the attack with an option and without it.
func (s *series) yesOrNo(what string, play func(s *series, yes bool)) {
	parts(s, []bool{true, false}, func(yes bool) string { return fmt.Sprintf("%s: %v", what, yes) }, play)
}

// ends plays the attack with every ending of a page, each in several rounds.
func (s *series) ends(round func(s *Scene, end Ending)) {
	parts(s, All, func(end Ending) string { return end.Name }, func(s *series, end Ending) {
		s.rounds(1, 20, func(s *Scene) { round(s, end) })
	})
}
