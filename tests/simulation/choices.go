package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/lock"
)

// choice is a text that a user makes the content although it may lack saved words. Until its outcome is known, the
// content may be this text or the earlier one.
type choice struct {
	token int64 // of the editor, when it decides
	text  string
	shown string // the text of the previous editor
}

// chooses records that an editor is about to make a text the content.
func (s *words) chooses(domain string, c *choice) *choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choices[domain] = append(s.choices[domain], c)
	return c
}

// chosen records that the text of a choice is the content, unless a later editor has begun.
func (s *words) chosen(domain string, c *choice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.count("choices")
	if s.tokens[domain] <= c.token {
		s.accept(domain, c.text, c.shown)
		s.tokens[domain] = c.token
	}
	s.choices[domain] = slices.DeleteFunc(s.choices[domain], func(other *choice) bool { return other == c })
}

// decided forgets the choices of editors before the one with the token.
func (s *words) decided(domain string, token int64) {
	s.choices[domain] = slices.DeleteFunc(s.choices[domain], func(c *choice) bool { return c.token < token })
}

// accept makes a text the one that every later content continues. If there is a server, the history need not have
// the words that the content loses: the history of one machine may lack them.
func (s *words) accept(domain, text, shown string) {
	if s.remote {
		s.forget(lacking(text, s.acked[domain]))
		s.forget(lacking(text, shown))
	}
	s.acked[domain] = text
}

// forget lets words be missing in the end.
func (s *words) forget(gone []string) {
	for _, word := range gone {
		s.gone[word] = true
	}
}

// discards records that a user is about to remove a draft.
func (s *words) discards(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(slices.Collect(split(text)))
}

// undecided returns the choice whose text this is, or continues; nil if there is none. A text that continues a choice
// has no saved word that the choice lacks, unless an editor has merged it from a draft.
func (s *words) undecided(domain, text string) *choice {
	for _, c := range s.choices[domain] {
		if len(lacking(text, c.text)) > 0 {
			continue
		}
		chosen, saved := in(c.text), in(s.acked[domain])
		mixed := func(word string) bool { return saved[word] && !chosen[word] }
		if s.merging || !slices.ContainsFunc(slices.Collect(split(text)), mixed) {
			return c
		}
	}
	return nil
}

// pin is the last decision about a generation. Its name is empty if the generation is not pinned or this is unknown.
type pin struct {
	token  int64
	name   string
	number int // of the call that began last
}

// pinning records that a decision begins. Its name is not known until the answer is there. pinning returns the number of the call.
func (s *words) pinning(at *origin, id string, token int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[at] == nil {
		s.pins[at] = make(map[string]pin)
	}
	p := s.pins[at][id]
	p.number++
	if p.token <= token {
		p.token, p.name = token, ""
	}
	s.pins[at][id] = p
	return p.number
}

// pinned records the answer to a call, unless another one has begun meanwhile: nobody knows which of the two came last.
func (s *words) pinned(at *origin, id string, p pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[at][id].number == p.number {
		s.pins[at][id] = p
	}
}

// lookAtPins checks that each pinned generation is still there, with its name.
func (s *words) lookAtPins(at *origin, list []autosave.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]string)
	for _, g := range list {
		names[g.ID] = g.Name
	}
	for _, id := range slices.Sorted(maps.Keys(s.pins[at])) {
		if p := s.pins[at][id]; p.name != "" && names[id] != p.name {
			s.w.found("pinned", "generation %s of %s was pinned as %q, and now has the name %q", id, at.name, p.name, names[id])
		}
	}
}

// restore makes a former text the content, and shows it.
func (e *editor) restore() {
	e.call("restoring", time.Minute, func(ctx context.Context) error {
		g, err := e.generation(ctx)
		if err != nil {
			return err
		}
		_, sleeps := e.tab.slept()
		text, err := e.saver.Read(ctx, g.ID)
		if err != nil {
			return err
		}
		lease, ok := e.saver.Lease()
		if !ok {
			return autosave.ErrReadOnly
		}
		e.mu.Lock()
		loads := e.loads
		e.mu.Unlock()
		c := e.run.words.chooses(e.domain, &choice{lease.Token, string(text), e.shows()})
		got, err := e.saver.Restore(ctx, g.ID)
		if err != nil {
			return err
		}
		if string(got) != string(text) {
			e.tab.w.found("restored", "%s restored generation %s and got another text", e.tab.name, g.ID)
		}
		if err := e.saver.FlushEvents(ctx); err != nil || e.tab.awake() != nil {
			return err
		}
		e.load(c.text, loads)
		e.run.words.chosen(e.domain, c)
		e.tab.w.note(e.tab.name, "has restored %q", clipped(c.text))
		e.checkRestored(ctx, lease, c, sleeps)
		return nil
	})
}

// load shows a restored text, unless the page has loaded a later content since.
func (e *editor) load(text string, loads int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loads == loads {
		e.text = text
		e.renew(e.other)
	}
}

// shows returns the text of the page.
func (e *editor) shows() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text
}

// checkRestored checks that the content is the restored text, as long as the page still edits.
func (e *editor) checkRestored(ctx context.Context, lease lock.Lease, c *choice, sleeps int) {
	now, err := e.saver.Read(ctx, autosave.Current)
	if _, s := e.tab.slept(); err != nil || s != sleeps || lease.Err() != nil || e.tab.at.stolenSince(time.Now().Add(-notice)) {
		return
	}
	if string(now) != c.text {
		e.tab.w.found("restored", "%s restored %q, but the content is %q", e.tab.name, clipped(c.text), clipped(string(now)))
	}
}

// generation returns any generation.
func (e *editor) generation(ctx context.Context) (g autosave.Generation, err error) {
	all, err := e.saver.History(ctx)
	if err != nil {
		return g, err
	}
	if len(all) == 0 {
		return g, autosave.ErrNotFound
	}
	return all[e.dice.n(len(all))], nil
}

// pin pins a generation, or removes its pin.
func (e *editor) pin() {
	e.call("pinning", time.Minute, func(ctx context.Context) error {
		g, err := e.generation(ctx)
		if err != nil {
			return err
		}
		lease, ok := e.saver.Lease()
		if !ok {
			return autosave.ErrReadOnly
		}
		name := ""
		if e.dice.chance(0.8) {
			name = fmt.Sprintf("%s at %s", e.tab.name, e.tab.w.now())
		}
		at := e.tab.at
		number := e.run.words.pinning(at, g.ID, lease.Token)
		got, err := e.saver.Pin(ctx, g.ID, name)
		if err != nil {
			return err
		}
		e.tab.w.count("pins")
		e.run.words.pinned(at, got.ID, pin{lease.Token, name, number})
		return nil
	})
}

// decide decides about a draft that waits.
func (e *editor) decide() {
	e.call("deciding", time.Minute, func(ctx context.Context) error {
		waiting, err := e.saver.Drafts(ctx)
		e.mu.Lock()
		own := e.id
		e.mu.Unlock()
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(d autosave.Draft) bool { return d.ID == own })
		if err != nil || len(waiting) == 0 {
			return err
		}
		d := waiting[e.dice.n(len(waiting))]
		read, err := e.saver.Read(ctx, d.ID)
		if err != nil {
			return err
		}
		lease, ok := e.saver.Lease()
		if !ok {
			return autosave.ErrReadOnly
		}
		text, as := string(read), pick(e.dice, autosave.AsContent, autosave.AsContent, autosave.AsGeneration, autosave.AsGeneration, autosave.AsDiscard)
		var c *choice
		switch as {
		case autosave.AsContent:
			c = e.run.words.chooses(e.domain, &choice{lease.Token, text, e.shows()})
		case autosave.AsDiscard:
			e.run.words.discards(text)
		}
		if err = e.saver.ResolveDraft(ctx, d.ID, as); err == nil {
			err = e.saver.FlushEvents(ctx)
		}
		if err != nil || e.tab.awake() != nil {
			return err
		}
		e.tab.w.note(e.tab.name, "has decided: draft %s is %s", d.ID, as)
		e.tab.w.count("decisions")
		if c != nil {
			e.run.words.chosen(e.domain, c)
		}
		return nil
	})
}

// merge appends the words of a draft to the content. A user's code may also take too long, or decline.
func (e *editor) merge(ctx context.Context, c autosave.Conflict) (autosave.Content, error) {
	if err := e.tab.step(); err != nil {
		return nil, err
	}
	if e.dice.chance(0.1) {
		time.Sleep(e.dice.between(time.Second, 8*time.Second))
	}
	if e.dice.chance(0.2) {
		return nil, nil
	}
	e.tab.w.count("merges")
	merged, base, theirs := string(c.Theirs), in(string(c.Base)), in(string(c.Theirs))
	for word := range split(string(c.Mine)) {
		if !theirs[word] && !base[word] {
			merged += word
		}
	}
	return autosave.Bytes(merged), nil
}
