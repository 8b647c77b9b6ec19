package simulation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/autosave/autosavetest"
	"github.com/holdfast-dev/holdfast/remote"
)

// words knows each typed word and each word that was acknowledged as saved. Words are only added, so every later save
// contains all words that were acknowledged before.
type words struct {
	w *world

	mu     sync.Mutex
	last   int
	typed  []string          // and journalled
	acked  map[string]string // by domain: the last acknowledged content; every later content contains all its words
	tokens map[string]int64  // of the editors that saved them
	kept   map[string]bool   // the minimum contents of the history

	choices       map[string][]*choice // by domain: those whose outcome is not known
	small, remote bool                 // the history: it is limited, or there is a server
	merging       bool                 // editors merge texts
	gone          map[string]bool      // words that may be missing in the end: a user's choice removed them
	pins          map[*origin]map[string]pin
}

func newWords(w *world) *words {
	return &words{w: w, acked: make(map[string]string), kept: make(map[string]bool), tokens: make(map[string]int64),
		choices: make(map[string][]*choice), gone: make(map[string]bool), pins: make(map[*origin]map[string]pin)}
}

// next returns a new word.
func (s *words) next(by string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.w.count("words")
	return fmt.Sprintf("<%d %s>", s.last, by)
}

func (s *words) journalled(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed = append(s.typed, word)
}

// split splits a text into its words.
func split(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for end := strings.IndexByte(text, '>'); end >= 0; end = strings.IndexByte(text, '>') {
			if !yield(text[:end+1]) {
				return
			}
			text = text[end+1:]
		}
	}
}

// in returns the words of a text as a set.
func in(text string) map[string]bool {
	all := make(map[string]bool)
	for word := range split(text) {
		all[word] = true
	}
	return all
}

// acknowledge records that a text was saved, as the content or beside it. A tab that was frozen may learn of its save
// after a later editor has saved; then the later text has to contain its words.
func (s *words) acknowledge(t *tab, domain, text string, g *autosave.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.count("saves")
	if !g.Current {
		maps.Copy(s.kept, in(text))
		return
	}
	if g.Token < s.tokens[domain] {
		if lost := lacking(s.acked[domain], text); len(lost) > 0 {
			s.w.found("saved", "a text was saved without %v, which %s had saved before", lost, t.name)
		}
		return
	}
	s.tokens[domain] = g.Token
	for _, word := range s.missing(domain, text) {
		s.w.found("saved", "%s saved a text without %s, which was saved before", t.name, word)
	}
	s.accept(domain, text, "")
	s.decided(domain, g.Token)
}

// missing returns the acknowledged words that are not in a text, unless a user may have chosen it.
func (s *words) missing(domain, text string) (lost []string) {
	lost = lacking(text, s.acked[domain])
	if len(lost) > 0 && s.undecided(domain, text) != nil {
		return nil
	}
	return lost
}

// lacking returns the words of an earlier text that are not in a text.
func lacking(text, earlier string) (lost []string) {
	if strings.HasPrefix(text, earlier) {
		return nil
	}
	has := in(text)
	for word := range split(earlier) {
		if !has[word] {
			lost = append(lost, word)
		}
	}
	return lost
}

// begins checks the text with which an editor begins. A text that was loaded is the content, and decides every choice of
// earlier editors. Otherwise it is the page's own, and need not be saved yet.
func (s *words) begins(t *tab, domain, text string, token int64, loaded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lost := s.missing(domain, text); len(lost) > 0 {
		s.w.found("loaded", "%s begins without %v, which was saved before", t.name, lost)
	} else if c := s.undecided(domain, text); c != nil && loaded && s.tokens[domain] < token {
		s.accept(domain, text, c.shown)
	}
	if loaded {
		s.decided(domain, token)
	}
}

// settled checks the final state after everything is closed: the content contains all acknowledged words.
func (s *words) settled(domain, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lost := s.missing(domain, content); len(lost) > 0 {
		s.w.found("saved", "the content of %s lacks %v", domain, lost)
	}
}

// found checks that each journalled or saved word is in some text. A small history has removed generations, and with
// them words that no later text contains.
func (s *words) found(all string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.small {
		return
	}
	has := in(all)
	for _, word := range append(s.typed, slices.Sorted(maps.Keys(s.kept))...) {
		if !has[word] && !s.gone[word] {
			s.w.found("lost", "%s is nowhere", word)
		}
	}
}

// lookAtTexts reads the final texts: the files and drafts of each origin, and the server's content.
func (r *run) lookAtTexts() {
	var all strings.Builder
	for _, at := range r.origins {
		texts := r.words.texts(at)
		all.WriteString(strings.Join(texts, ""))
		all.WriteString(strings.Join(at.shelf.Texts(), ""))
		if !r.plan.remote {
			r.words.settled(at.name, strings.Join(texts[:min(1, len(texts))], ""))
		}
	}
	if r.plan.remote {
		x := r.origins[0].browser.send(r.origins[0].url, remote.Request{Method: "GET", Path: "/api/documents/" + r.plan.documentID() + "/content"})
		content := string((<-x.reply).reply.Body)
		close(x.given)
		r.words.settled("server", content)
		all.WriteString(content)
	}
	r.words.found(all.String())
}

// texts returns the generations of an origin, the current one first, and checks its pins.
func (s *words) texts(o *origin) (texts []string) {
	store := autosave.NewLayout(o.disk.Stepped(nil), autosavetest.SHA256)
	list, err := store.List(context.Background())
	if err != nil {
		s.w.found("saved", "the history of %s cannot be listed: %v", o.name, err)
	}
	s.lookAtPins(o, list)
	for _, g := range list {
		text, err := store.Read(context.Background(), g.ID)
		if err != nil {
			s.w.found("saved", "generation %s of %s cannot be read: %v", g.ID, o.name, err)
		}
		texts = append(texts, string(text))
	}
	return texts
}
