package campaign

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typist returns an oracle with one session that typed words at these instants.
func typist(at ...float64) (*oracle, *session) {
	o := newOracle(200*time.Millisecond, time.Second)
	s := o.open("s1", "web 0", false)
	for i, typed := range at {
		o.heard([]*session{s}, entry{What: "typed", Session: "s1", At: typed, Words: []string{[]string{"a", "b", "c"}[i]}})
	}
	return o, s
}

// look inspects twice, separated by the oracle's patience, and returns the reported violations.
func look(o *oracle, s *session, found seen) string {
	now := time.Now()
	o.inspect(s.document, found, true, now)
	o.inspect(s.document, found, true, now.Add(2*o.patience))
	return strings.Join(o.violations, "\n")
}

func TestAcknowledgedWordMustBeInContentOrHistory(t *testing.T) {
	for name, c := range map[string]struct {
		found seen
		lost  bool
	}{
		"content": {seen{Content: []string{"a"}}, false},
		"history": {seen{History: []string{"a"}}, false},
		"draft":   {seen{Drafts: []string{"a"}}, true},
		"nowhere": {seen{}, true},
	} {
		o, s := typist(1000)
		o.heard([]*session{s}, entry{What: "saved", Session: "s1", Words: []string{"a"}})
		assert.Equal(t, c.lost, look(o, s, c.found) != "", name)
	}
}

func TestAbruptEndRequiresWhatTheJournalHadTimeFor(t *testing.T) {
	o, s := typist(1000, 1100, 1200)
	control := func(began, done float64) {
		o.heard([]*session{s}, entry{What: "control", Began: began, At: done})
	}
	for range margin {
		control(1150, 1160) // before the journal was due
		control(1250, 1260) // after the journal was due for the first word
	}
	for range margin - 1 {
		control(1310, 1320) // after it was due for the second word
	}
	control(1320, 1390) // it ends too late
	o.end(s, "crashed", true, 1380)
	found := look(o, s, seen{})
	assert.Contains(t, found, "1 of 3 words")
	assert.Contains(t, found, "the first: a;")
	o.settle(s.document, seen{}, map[*session]float64{s: 1380})
	assert.ElementsMatch(t, []time.Duration{280 * time.Millisecond, 180 * time.Millisecond}, o.lostAges)
}

func TestAbruptEndRequiresWhatTheJournalHasAcknowledged(t *testing.T) {
	o, s := typist(1000, 1010, 1020)
	hear := func(what string, at, cost float64, words ...string) {
		o.heard([]*session{s}, entry{What: what, Session: "s1", At: at, Cost: cost, Words: words})
	}
	hear("posted", 1015, 1, "a", "b")
	hear("journalled", 1018, 0, "a")
	o.end(s, "crashed", true, 1021)
	found := look(o, s, seen{})
	assert.Contains(t, found, "1 of 3 words")
	assert.Contains(t, found, "the first: a; it was journalled")
}

// A journal that waits for its worker, or that has used much of the page's time, need not have stored anything yet.
func TestAbruptEndRequiresNothingWhileTheJournalHasNoTime(t *testing.T) {
	for name, c := range map[string]struct {
		cost, control float64
		answered      bool
		killed, began bool // the browser, and Go
		requires      bool
	}{
		"in time":                     {1, 1500, true, false, true, true},
		"not answered":                {1, 1500, false, false, true, false},
		"localStorage gets it":        {1, 6500, false, false, true, true},
		"localStorage is gone":        {1, 6500, false, true, true, false},
		"never answers":               {1, 12_000, false, true, true, true},
		"dear":                        {100, 1500, true, false, true, false},
		"in time, before Go":          {1, 1500, true, false, false, true},
		"answered, gone before Go":    {1, 1500, true, true, false, false},
		"never answers, gone, before": {1, 12_000, false, true, false, false},
	} {
		o, s := typist(1000, 1020)
		s.began, s.local = c.began, !c.killed
		o.heard([]*session{s}, entry{What: "posted", Session: "s1", At: 1010, Cost: c.cost, Words: []string{"a"}})
		if c.answered {
			o.heard([]*session{s}, entry{What: "journalled", Session: "s1", At: 1012, Words: []string{"a"}})
		}
		for range margin {
			o.heard([]*session{s}, entry{What: "control", Began: c.control, At: c.control + 10})
		}
		o.end(s, "crashed", true, c.control+500)
		assert.Equal(t, c.requires, strings.Contains(look(o, s, seen{Drafts: []string{"a"}}), "b; its page ended"), name)
	}
}

func TestAnnouncedEndOwesEveryWord(t *testing.T) {
	o, s := typist(1000, 1399)
	o.end(s, "closed", false, 1400)
	o.heard(nil, entry{What: "announced", Session: "s1"})
	assert.Contains(t, look(o, s, seen{Drafts: []string{"a"}}), "1 of 2 words")
}

// A browser on a busy machine ends a page that does not answer within half a second, without an event for the page.
func TestEndThatTheBrowserDidNotAnnounceRequiresWhatWasJournalled(t *testing.T) {
	for _, how := range []string{"closed", tornDown + " by close"} {
		o, s := typist(1000, 1399)
		o.heard([]*session{s}, entry{What: "journalled", Session: "s1", At: 1200, Words: []string{"a"}})
		o.end(s, how, false, 1400)
		found := look(o, s, seen{})
		assert.Equal(t, how == "closed", strings.Contains(found, "1 of 2 words"), "%s: %s", how, found)
		assert.Equal(t, how != "closed", strings.Contains(found, "2 of 2 words"), "%s: %s", how, found)
	}
}

// A page that has come back shows its words, and no other page sees the draft that it has opened again.
func TestPageOutOfTheCacheMustKeepWhatItEndsWith(t *testing.T) {
	o, s := typist(1000)
	o.end(s, inCache, false, 1400)
	o.inspect(s.document, seen{}, true, time.Now())
	o.back(s)
	assert.False(t, o.waiting(s.document))
	assert.Empty(t, look(o, s, seen{}))
	o.end(s, "closed", false, 1500)
	o.heard(nil, entry{What: "announced", Session: "s1"})
	assert.Contains(t, look(o, s, seen{}), "1 of 1 words")
}

// After a return from the cache, a page keeps its words in localStorage until the journal has another worker. A browser that ends may
// lose them.
func TestPageOutOfTheCacheMustKeepWhatItsNextWorkerHasWhenTheBrowserDies(t *testing.T) {
	for name, c := range map[string]struct {
		hears    string // of the next worker or Go
		local    bool   // localStorage outlives the end
		requires bool
	}{
		"no worker":                  {"", false, false},
		"no worker, and a crash":     {"", true, true},
		"the journal has answered":   {"journalled", false, true},
		"Go has given it a text":     {"loaded", false, true},
		"Go has acknowledged a save": {"saved", false, true},
	} {
		o, s := typist(1000)
		s.began = true
		o.end(s, inCache, false, 1100)
		o.back(s)
		if c.hears != "" {
			o.heard([]*session{s}, entry{What: c.hears, Session: "s1", At: 1200})
		}
		for range margin {
			o.heard([]*session{s}, entry{What: "control", Began: 1300, At: 1310})
		}
		s.local = c.local
		o.end(s, "browser terminated", true, 1900)
		assert.Equal(t, c.requires, look(o, s, seen{}) != "", name)
	}
}

// Such a page is closed, and the browser is killed before another page opens the document.
func TestPageOutOfTheCacheNeedNotKeepWhatOnlyLocalStorageHad(t *testing.T) {
	for _, answers := range []bool{false, true} {
		o, s := typist(1000)
		s.began = true
		o.end(s, inCache, false, 1100)
		o.back(s)
		if answers {
			o.heard([]*session{s}, entry{What: "journalled", Session: "s1", At: 1200})
		}
		for range margin {
			o.heard([]*session{s}, entry{What: "control", Began: 1300, At: 1310})
		}
		o.end(s, "closed", false, 1900)
		o.heard(nil, entry{What: "announced", Session: "s1"})
		(&run{oracle: o, ends: map[*session]float64{s: 1900}}).onlyInMemory(2000)
		assert.Equal(t, answers, look(o, s, seen{}) != "", "answers: %t", answers)
	}
}

func TestPageInTheCacheOwesEveryWord(t *testing.T) {
	o, s := typist(1000)
	o.end(s, inCache, false, 1400)
	o.heard(nil, entry{What: "announced", Session: "s1"})
	assert.Contains(t, look(o, s, seen{}), "1 of 1 words")
}

func TestOverwrittenWordIsReported(t *testing.T) {
	o, s := typist(1000)
	o.heard([]*session{s}, entry{What: "saved", Session: "s1", Words: []string{"a"}})
	require.Empty(t, look(o, s, seen{Content: []string{"a"}}))
	assert.Contains(t, look(o, s, seen{Content: []string{"older"}}), "overwritten")
}

func TestWordOfReplacedTextIsOwedWhileItsPageLives(t *testing.T) {
	o, s := typist(1000)
	require.Empty(t, look(o, s, seen{}))
	o.heard([]*session{s}, entry{What: "loaded", Session: "s1", Replaced: []string{"a"}})
	assert.Contains(t, look(o, s, seen{}), "another text")
}

func TestWordThatComesBackInTimeIsNotLost(t *testing.T) {
	o, s := typist(1000)
	o.end(s, "closed", false, 1400)
	now := time.Now()
	o.inspect(s.document, seen{}, true, now)
	assert.True(t, o.waiting(s.document))
	o.inspect(s.document, seen{Drafts: []string{"a"}}, true, now.Add(o.patience/2))
	assert.False(t, o.waiting(s.document))
	assert.Empty(t, look(o, s, seen{Content: []string{"a"}}))
}

func TestWipedStorageIsForgiven(t *testing.T) {
	o, s := typist(1000)
	o.end(s, "closed", false, 1400)
	o.forgive(func(*word) bool { return true })
	assert.Empty(t, look(o, s, seen{}))
}
