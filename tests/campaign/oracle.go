package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// word is a word that was typed once, in one session.
type word struct {
	text     string
	session  *session
	typed    float64 // milliseconds of the wall clock, read by the page
	saved    bool    // the page received the acknowledgement
	home     bool    // seen in the content
	posted   float64 // when it was sent to the journal's worker; 0: never
	kept     bool    // the journal's worker reported that it is stored
	stored   bool    // seen anywhere after the end of its page
	required string  // the reason why it must be kept; "" while it may be lost
	cached   bool    // required only while its page is in the back/forward cache
	missing  time.Time
	lost     bool // reported
}

// session is one document that is open in one page, until that page ends.
type session struct {
	id       string
	document *document
	words    []*word
	controls []control // since the page began, in order
	posts    []posting // the last three snapshots of the journal, the newest last
	waits    bool      // waits for the answer to the last one
	early    bool      // the page edits before Go runs
	began    bool      // Go runs
	returned bool      // out of the cache, and neither Go nor the journal's next worker has answered since
	local    bool      // what the page writes to localStorage outlives its end
	ended    string
	excused  bool // storage refused writes while it ran
	orderly  bool // the browser had to announce its end to the page

	announced bool // the browser did, and stored what the page wrote then
}

// posting is one snapshot that the page sent to the journal's worker.
type posting struct{ at, cost float64 } // cost is how long it blocked the page

// control is one write of the page's control worker.
type control struct{ began, done float64 }

// document is a document that many sessions edit, one after the other.
type document struct {
	name   string
	shared bool // on the server
	words  map[string]*word
}

// oracle knows every typed word, every acknowledgement, and how each page ended. It compares the documents with that.
// A word is kept if the content, the history or a draft contains it.
type oracle struct {
	journal    time.Duration // the maximum age of a word that a crash may lose, without the margin
	patience   time.Duration // how long after an end the kept words may be missing
	sessions   map[string]*session
	documents  map[string]*document
	violations []string
	failures   []string // failures that are not violations, but help to find the cause of one
	count      map[string]int
	controls   []time.Duration // their durations
	journals   []time.Duration // from the word to the answer of the journal's worker
	lostAges   []time.Duration // of words that an abrupt end was allowed to lose
}

func newOracle(journal, patience time.Duration) *oracle {
	return &oracle{journal: journal, patience: patience, sessions: map[string]*session{}, documents: map[string]*document{}, count: map[string]int{}}
}

func (o *oracle) accuse(format string, values ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, values...))
}

// open records that a session is about to begin.
func (o *oracle) open(id, name string, shared bool) *session {
	d := o.documents[name]
	if d == nil {
		d = &document{name: name, shared: shared, words: map[string]*word{}}
		o.documents[name] = d
	}
	s := &session{id: id, document: d, local: true}
	o.sessions[id] = s
	return s
}

// entry is a line that a page recorded.
type entry struct {
	What, Session, Code, Why string
	At, Began, Cost          float64
	Words, Replaced          []string
	Token                    int64
	Generation, Base, Draft  string
	Bytes                    int64
}

// heard processes a line of a page with these sessions.
func (o *oracle) heard(sessions []*session, e entry) {
	switch e.What {
	case "control":
		o.controls = append(o.controls, time.Duration((e.At-e.Began)*float64(time.Millisecond)))
		for _, s := range sessions {
			s.controls = append(s.controls, control{e.Began, e.At})
		}
		return
	case "uncaught":
		o.accuse("a page has an error that nobody caught: %s", e.Why)
		return
	}
	s := o.sessions[e.Session]
	if s == nil {
		o.accuse("a page writes down %q of the session %q, which nobody began", e.What, e.Session)
		return
	}
	o.told(s, e)
}

// told processes a line of a session.
func (o *oracle) told(s *session, e entry) {
	switch e.What {
	case "began":
		s.began = true
	case "early":
		s.early = true
		o.count["documents that were edited before the Wasm was there"]++
	case "announced":
		s.announced = true
	case "typed":
		for _, text := range e.Words {
			w := &word{text: text, session: s, typed: e.At}
			s.words, s.document.words[text] = append(s.words, w), w
			o.count["words typed"]++
			if !s.began {
				o.count["words typed before the Wasm was there"]++
			}
		}
	case "saved":
		s.returned = false
		o.count["saves acknowledged"]++
		for _, w := range s.document.typed(e.Words) {
			w.saved, w.required, w.cached = true, "it was acknowledged", false
		}
	case "posted":
		s.posts, s.waits = append(s.posts[max(0, len(s.posts)-2):], posting{e.At, e.Cost}), true
		for _, w := range s.document.typed(e.Words) {
			w.posted = e.At
		}
	case "journalled":
		s.waits, s.returned = false, false
		for _, w := range s.document.typed(e.Words) {
			w.kept = true
			o.journals = append(o.journals, time.Duration((e.At-w.typed)*float64(time.Millisecond)))
		}
	case "loaded":
		s.returned = false
		o.count["loads"]++
		o.shrunk(s, set(e.Words))
		for _, w := range s.document.typed(e.Replaced) {
			if w.required == "" && !s.excused {
				w.required = "its page was given another text"
			}
		}
	case "failed":
		o.failures = append(o.failures, fmt.Sprintf("%s of %s: %s", s.id, s.document.name, e.Why))
		fallthrough
	case "refused":
		o.count[e.What+" "+e.Code]++
	}
}

// typed returns the words with these texts, without the texts that nobody typed.
func (d *document) typed(texts []string) (words []*word) {
	for _, text := range texts {
		if w := d.words[text]; w != nil {
			words = append(words, w)
		}
	}
	return words
}

// shrunk records, for debugging a loss, that an editor begins with less than the former content.
func (o *oracle) shrunk(s *session, content map[string]bool) {
	lacks := map[string]int{}
	for text, w := range s.document.words {
		if w.home && !content[text] {
			lacks[w.session.id]++
		}
	}
	if len(lacks) > 0 {
		o.failures = append(o.failures, fmt.Sprintf("%s begins to edit %s without words that the content had, of %v", s.id, s.document.name, lacks))
	}
}

// end records how and when a page with a session ended. If the page receives the end as an event, every word recorded
// before it must be kept. After an abrupt end, every word that the journal's worker had stored must be kept, and
// every word for which the journal had its time: the same page finished some control writes that began after the
// journal was due.
func (o *oracle) end(s *session, how string, abrupt bool, at float64) {
	s.ended, s.orderly = how, !abrupt && !strings.HasPrefix(how, tornDown)
	o.count["end: "+how]++
	for _, w := range s.words {
		before := w.required
		switch {
		case w.required != "":
		case w.kept:
			w.required = fmt.Sprintf("it was journalled, and its page ended (%s) %.0f ms after it was typed", how, at-w.typed)
		case !s.excused && (!abrupt || s.due(w, o.journal, at)):
			w.required = fmt.Sprintf("its page ended (%s) %.0f ms after it was typed", how, at-w.typed)
			if abrupt && w.posted > 0 {
				w.required += fmt.Sprintf(", %.0f ms after the journal's worker was sent it", at-w.posted)
			}
		}
		w.cached = how == inCache && before == ""
	}
}

const (
	inCache  = "in the cache" // the end of a page that is in the back/forward cache
	tornDown = "torn down"    // the end of a page whose program ends its AutoSaves
)

// back records that a page has come back from the cache. It shows its text, and may have opened its draft again, so
// that no other page sees the draft. The words that it had to keep are required again when it ends.
func (o *oracle) back(s *session) {
	s.ended, s.returned = "", true
	for _, w := range s.words {
		if w.cached {
			w.required, w.cached, w.missing = "", false, time.Time{}
		}
	}
}

const (
	// margin is how many consecutive control writes show that the machine gave the journal its time. One is not
	// enough: the journal has another worker, which the system may delay while the control worker runs.
	margin = 5
	// share is the maximum part of the page's time for the journal, measured with the cheapest of its last three
	// snapshots.
	share = 0.05
	// stuck is the time after which a journal without an answer is at fault, not the machine. In milliseconds.
	stuck = 10_000
	// late is the time after which localStorage gets what the journal's worker has not stored. In milliseconds.
	late = 5000
)

// due reports whether the journal had its time for a word before an instant: the previous snapshot was answered, or
// localStorage was due to get the word instead, and control writes began and finished after the next one was due.
func (s *session) due(w *word, journal time.Duration, at float64) bool {
	due, n := w.typed+float64(journal.Milliseconds()), 0
	if last := len(s.posts) - 1; last >= 0 {
		cheapest := slices.MinFunc(s.posts, func(a, b posting) int { return cmp.Compare(a.cost, b.cost) })
		due = max(due, s.posts[last].at+cheapest.cost/share)
		switch {
		case s.waits && s.local:
			due = max(due, s.posts[last].at+late)
		case s.waits && (!s.began || at-s.posts[last].at < stuck):
			return false
		}
	}
	if (!s.began || s.returned) && !s.local {
		return false // there may be no worker: the page may journal in localStorage
	}
	for _, c := range s.controls {
		if c.began >= due && c.done <= at {
			n++
		}
	}
	return n >= margin
}

// seen is the state of a document.
type seen struct{ Drafts, Content, History, Seen []string }

// inspect compares the state of a document with the words that must be there. It reports whether it needs the history
// to decide.
func (o *oracle) inspect(d *document, s seen, history bool, now time.Time) (more bool) {
	content, saved := set(s.Content), set(slices.Concat(s.Content, s.History))
	kept := set(slices.Concat(s.Drafts, s.Content, s.History))
	for text := range content {
		if w := d.words[text]; w != nil {
			w.home = true
		}
	}
	lost := map[*session][]*word{}
	for _, text := range slices.Sorted(maps.Keys(d.words)) {
		w := d.words[text]
		w.stored = w.stored || kept[text] && w.session.ended != ""
		switch {
		case w.lost, w.required == "":
		case content[text] || kept[text] && !w.home && !w.saved:
			w.missing = time.Time{}
		case !history:
			more = true
		case saved[text]: // kept, although the content had it before
			w.missing = time.Time{}
			o.count["words found in the history only"]++
		case w.missing.IsZero():
			w.missing = now
		case now.Sub(w.missing) > o.patience && w.unannounced():
			w.required = ""
			o.count["words of ends that the browser did not announce"]++
		case now.Sub(w.missing) > o.patience:
			w.lost = true
			lost[w.session] = append(lost[w.session], w)
		}
	}
	for s, words := range lost {
		o.accuse("%d of %d words of session %s (%s, ended: %s) are lost; the first: %s; the last: %s",
			len(words), len(s.words), s.id, s.document.name, s.ended, words[0].story(), words[len(words)-1].story())
	}
	return more
}

// unannounced reports whether the browser ended the page of the word without an announcement, or lost what the page wrote
// then, while the word was not stored yet. In both cases the control of the end is missing, which the page writes first.
func (w *word) unannounced() bool {
	return w.session.orderly && !w.session.announced && !w.kept && !w.saved && !w.home
}

func (w *word) story() string {
	parts := []string{w.text}
	if w.home {
		parts = append(parts, "the content had it before: it was overwritten")
	}
	if w.saved {
		parts = append(parts, "its save was acknowledged")
	}
	return strings.Join(append(parts, w.required), "; ")
}

// settle counts, at the end of the run, the words that an abrupt end was allowed to lose, and their ages.
func (o *oracle) settle(d *document, s seen, ends map[*session]float64) {
	kept := set(slices.Concat(s.Drafts, s.Content, s.History))
	for _, w := range d.words {
		if at, ended := ends[w.session]; ended && w.required == "" && !kept[w.text] && !w.session.excused {
			o.lostAges = append(o.lostAges, time.Duration((at-w.typed)*float64(time.Millisecond)))
		}
	}
}

// waiting reports whether a word of the document is required and missing.
func (o *oracle) waiting(d *document) bool {
	for _, w := range d.words {
		if !w.missing.IsZero() && !w.lost {
			return true
		}
	}
	return false
}

// forgive records that the storage was wiped: words that were only there may be lost, acknowledged or not.
func (o *oracle) forgive(chosen func(*word) bool) {
	for _, d := range o.documents {
		maps.DeleteFunc(d.words, func(_ string, w *word) bool { return chosen(w) })
	}
}

func set(texts []string) map[string]bool {
	m := make(map[string]bool, len(texts))
	for _, text := range texts {
		m[text] = true
	}
	return m
}
