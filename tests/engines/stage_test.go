package engines

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A stage is the environment of one scenario: an engine, a host, and a project that no other scenario uses.
type stage struct {
	*testing.T
	engine     Engine
	engineName string
	site       *Site
	host, root string
	pages      []*page
	seen       int      // errors on the console before the scenario began
	expected   []string // patterns of the errors that the scenario causes on purpose
	took       map[string]float64
}

// A page is a tab whose calls fail the test.
type page struct {
	t   *testing.T
	tab Tab
}

// play runs a scenario and closes the tabs that it left open. It fails the test for every unexpected error of a page
// or the console.
func (s *stage) play(scenario func(*stage)) {
	s.seen = len(s.engine.Errors())
	s.Cleanup(func() {
		for _, p := range s.pages {
			assert.NoError(s, p.tab.Close())
		}
	})
	scenario(s)
	for _, p := range s.pages {
		s.quiet(get[[]string](p, "problems"))
	}
	s.quiet(s.engine.Errors()[s.seen:])
}

func (s *stage) quiet(messages []string) {
	s.Helper()
	for _, message := range messages {
		known := slices.ContainsFunc(s.expected, func(p string) bool { return regexp.MustCompile(p).MatchString(message) })
		assert.True(s, known, "unexpected error: %s", message)
	}
}

// needs skips the scenario, with the reason, if the engine's driver lacks an ability.
func (s *stage) needs(what string) {
	s.Helper()
	if why := Limits[s.engineName][what]; why != "" {
		s.Skipf("%s cannot %s: %s", s.engineName, what, why)
	}
}

// open opens a tab with a Holdfast that is ready.
func (s *stage) open() *page {
	s.Helper()
	p := s.blank(s.site.URL(BlankPage))
	p.do("await start(" + s.options("") + ")")
	return p
}

// blank opens a tab with only the prelude.
func (s *stage) blank(url string) *page {
	s.Helper()
	tab, err := s.engine.Open(url)
	require.NoError(s, err)
	p := &page{s.T, tab}
	s.pages = append(s.pages, p)
	return p
}

// options returns the options of openHoldfast, with more of them in JavaScript syntax.
func (s *stage) options(more string) string {
	return fmt.Sprintf("{host: '%s', root: '%s', ownerName: 'Ann', %s}", s.host, s.root, more)
}

// note stores a figure for the table of figures.
func (s *stage) note(column string, ms float64) {
	s.Logf("%s: %.1f ms", column, ms)
	s.took[column] = ms
}

// gone records that the scenario closed or killed a page.
func (s *stage) gone(p *page) {
	s.pages = slices.DeleteFunc(s.pages, func(other *page) bool { return other == p })
}

// do runs statements in the page, which may use await.
func (p *page) do(js string) {
	p.t.Helper()
	require.NoError(p.t, Eval(p.tab, js, nil))
}

// wait waits until an expression is true. The expression may use await.
func (p *page) wait(expression string) {
	p.t.Helper()
	require.NoError(p.t, Wait(p.tab, expression, browser.Limit))
}

// get returns the value of an expression, which may use await.
func get[T any](p *page, expression string) (value T) {
	p.t.Helper()
	require.NoError(p.t, Eval(p.tab, "return "+expression, &value))
	return value
}

// clock is Go's clock in milliseconds, comparable with now() of a page: see testClocks.
func clock() float64 { return millis(time.Now()) }

func millis(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

// problem is a failure as a page describes it.
type problem struct {
	Name, Code, Operation, Message string
	Retryable                      bool
	Took                           float64
}
