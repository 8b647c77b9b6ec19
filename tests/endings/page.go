package endings

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A Stage is a browser at a site, as an attack needs it. Its methods fail the test on an error.
type Stage interface {
	// Open opens an empty page with the prelude of its tests: openHoldfast, start, failure, plain and now. If
	// holdfast has the options of a Holdfast, hf is that Holdfast, and it is ready.
	Open(t *testing.T, holdfast string) Tab
	// WaitStored waits until the storage of the pages contains the word.
	WaitStored(t *testing.T, word string)
	// Restart ends the browser with a signal and starts it again with the same profile.
	Restart(t *testing.T, signal syscall.Signal)
	// Cut disconnects the pages from their server, or reconnects them.
	Cut(off bool)
	// Other starts another browser with its own profile at the same site.
	Other(t *testing.T) Stage
}

// A Tab is a page of a stage. It is closed at the end of its round.
type Tab interface {
	// Run runs statements, which may use await. Their declarations do not persist, except properties of globalThis.
	Run(statements string) error
	// Eval decodes the value of an expression, which may use await.
	Eval(expression string, out any) error
	// Wait waits until an expression is true.
	Wait(expression string, limit time.Duration) error
	// Prepare makes a following End immediate.
	Prepare(how Ending) error
	// End ends the page.
	End(how Ending) error
	// Navigate loads the page of a path in the tab.
	Navigate(path string) error
	// Freeze freezes the page, as a browser does to save energy, or resumes it; see [Freezing].
	Freeze(on bool) error
	// Suspend stops the process of the page, or continues it; see [Suspending].
	Suspend(on bool) error
	// Leave closes the tab if it is still open.
	Leave()
}

// A page is a tab whose calls fail the test.
type page struct {
	Tab
	t *testing.T
}

func (p *page) do(statements string) {
	p.t.Helper()
	require.NoError(p.t, p.Run(statements))
}

func (p *page) wait(expression string) {
	p.t.Helper()
	require.NoError(p.t, p.Wait(expression, browser.Limit), expression)
}

func get[T any](p *page, expression string) (value T) {
	p.t.Helper()
	require.NoError(p.t, p.Eval(expression, &value))
	return value
}

// A Scene is one round of an attack.
type Scene struct {
	*testing.T
	Stage
	Setup
	round int
	root  string // of a project that no other round uses
}

// open opens a page, with a Holdfast if its options are given.
func (s *Scene) open(holdfast string) *page {
	s.Helper()
	tab := s.Open(s.T, holdfast)
	s.Cleanup(tab.Leave)
	p := &page{tab, s.T}
	p.do(Editing)
	p.do(Script)
	return p
}

// edits opens a page in which a user edits the document, or will edit it.
func (s *Scene) edits(owner, options string) *page {
	s.Helper()
	p := s.open(s.project(owner))
	p.do("await edit(" + options + ")")
	return p
}

// project returns the options of a user's Holdfast in the project.
func (s *Scene) project(owner string) string { return s.holdfast(s.root, owner) }

// ends ends a page in which a word was typed. An abrupt ending waits until the word is stored.
func (s *Scene) ends(p *page, how Ending, word string) {
	s.Helper()
	if how.Abrupt {
		s.WaitStored(s.T, word)
	}
	require.NoError(s, p.End(how))
}

// found asserts that an editing page has the word in one of the places.
func (s *Scene) found(p *page, word string, in ...string) {
	s.Helper()
	AssertFound(s.T, p, word, in...)
}

// left opens the document again and asserts where a word is.
func (s *Scene) left(word string, in ...string) {
	s.Helper()
	next := s.edits("Cleo", Unsaved)
	s.found(next, word, in...)
	next.do("await hf.close()")
}

// is asserts that the next editor finds this content.
func (s *Scene) is(p *page, text string) {
	s.Helper()
	p.wait("!autosave.readOnly")
	assert.Equal(s, text, get[string](p, "await current()"))
}

// name makes the name of a project from the name of a test.
func name(t *testing.T) string {
	_, part, _ := strings.Cut(t.Name(), "/")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, part)
}
