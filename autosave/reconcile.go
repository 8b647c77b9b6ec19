package autosave

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// mergeLimit is the maximum time of Config.Merge.
const mergeLimit = 5 * time.Second

// mergedSuffix ends the lineage of a generation that Config.Merge made. The generation contains the draft, but the text
// of the draft's page does not continue it: that text lacks the other side.
const mergedSuffix = "_merged"

// contains reports whether the generation was made of the draft, or of a later snapshot of it.
func (g Generation) contains(d Draft) bool {
	return (g.Draft == d.ID || g.Draft == d.ID+mergedSuffix) && g.Number >= d.Number
}

// reconciler brings the drafts of pages that are gone together with the saved content. It works under the token of an
// editor that may not edit yet.
//
// A draft that a generation contains is removed. A draft that continues the current generation becomes the current
// generation, and is removed after that commit. A draft that conflicts with the content is merged, or waits for a
// decision. A crash between a commit and the removal leaves a draft that is contained.
type reconciler struct {
	Config
	decisions *decisions
	token     int64
	owner     string       // OwnerName of the page
	own       string       // lineage of the text that the page keeps: its draft is left to the page
	all       []Generation // the current one first

	present  content
	waiting  []Draft    // the newest first
	conflict []Conflict // of the waiting drafts, if both sides could be read
	trouble  error      // why a draft waits although it need not
	late     bool       // a removal took too long
}

// content is the text of the newest generation that can be read.
type content struct {
	of     string // ID of the current generation; "" before it was read
	bytes  []byte
	whole  bool  // there is one
	damage error // the current generation cannot be read; bytes are of an earlier one
}

// list returns the drafts of other pages, and those of texts that this page no longer shows.
func (r *reconciler) list(ctx context.Context) []Draft {
	if r.Drafts == nil {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	listed, err := listFrom(limited, r.Drafts)
	if err != nil {
		r.trouble = asError(err, CodeReadFailed, "the drafts of this document could not be listed")
		return nil
	}
	return without(listed, func(d Draft) bool { return d.ID == r.own })
}

// run decides about the drafts that list has returned. It fails only if this editor has a successor, the storage was
// emptied, or the content cannot be read or is unknown.
func (r *reconciler) run(ctx context.Context, listed []Draft) (err error) {
	for len(listed) > 0 {
		if listed, err = r.adoptOne(ctx, listed); err != nil {
			return err
		}
	}
	return nil
}

// adoptOne removes contained drafts, then makes one draft part of the content. It returns the drafts to examine again,
// or nil if all others wait.
func (r *reconciler) adoptOne(ctx context.Context, listed []Draft) ([]Draft, error) {
	texts, listed, err := r.uncontained(ctx, listed)
	if err != nil {
		return nil, err
	}
	for i, d := range listed {
		if text, ok := texts[d.ID]; ok && r.continues(d) {
			committed, err := r.commit(ctx, d, d.ID, text)
			if committed || err != nil {
				return append(listed[:i:i], listed[i+1:]...), err
			}
		}
	}
	r.conflict = nil
	for i, d := range listed {
		text, ok := texts[d.ID]
		if !ok || r.continues(d) {
			continue
		}
		sides, err := r.sides(ctx, d, text)
		if err != nil {
			return nil, err
		}
		if !r.present.whole {
			continue // there is no other side
		}
		if sides.Base != nil && bytes.Equal(sides.Base, text) { // its page has undone what it typed
			r.remove(ctx, d, r.Drafts.Remove)
			return append(listed[:i:i], listed[i+1:]...), nil
		}
		if merged := r.merge(ctx, sides); merged != nil {
			committed, err := r.commit(ctx, d, d.ID+mergedSuffix, merged)
			if committed || err != nil {
				return append(listed[:i:i], listed[i+1:]...), err
			}
		}
		r.conflict = append(r.conflict, sides)
	}
	r.waiting = listed
	return nil, nil
}

// uncontained removes the drafts that the content or the history contains, and returns the others with their texts. A
// draft that cannot be read stays, without a text.
func (r *reconciler) uncontained(ctx context.Context, listed []Draft) (texts map[string][]byte, left []Draft, err error) {
	texts = make(map[string][]byte)
	for _, d := range listed {
		if slices.ContainsFunc(r.all, func(g Generation) bool { return g.contains(d) }) {
			r.remove(ctx, d, r.Drafts.Remove)
			continue
		}
		text, err := r.read(ctx, d)
		if errors.Is(err, ErrNotFound) {
			continue // another page has removed it, or its page types on
		}
		if err != nil {
			r.trouble = asError(err, CodeReadFailed, "a draft could not be read; it stays where it is")
			left = append(left, d)
			continue
		}
		if g, saved := current(r.all); saved && g.Bytes == int64(len(text)) {
			if err := r.load(ctx); err != nil {
				return nil, nil, err
			}
			if bytes.Equal(r.present.bytes, text) {
				r.remove(ctx, d, r.Drafts.Remove)
				continue
			}
		}
		texts[d.ID] = text
		left = append(left, d)
	}
	return texts, left, nil
}

func (r *reconciler) read(ctx context.Context, d Draft) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	return readFrom(ctx, theDrafts, r.Drafts.Read, d.ID)
}

// continues reports whether the draft was typed on the current generation.
func (r *reconciler) continues(d Draft) bool {
	g, saved := current(r.all)
	return !saved || g.isBase(d.Base) || g.Draft == d.ID
}

// commit saves the text for the draft, then removes the draft, unless the user has discarded it. It reports whether the draft no longer
// waits. If the store cannot save, the draft stays. If it is unknown whether it has saved, commit fails.
func (r *reconciler) commit(ctx context.Context, d Draft, lineage string, text []byte) (bool, error) {
	var g Generation
	as, err := r.decisions.decide(ctx, d, AsContent, func() (err error) {
		g, err = r.Store.Commit(ctx, Commit{Content: Bytes(text), Draft: lineage, Number: d.Number, Token: r.token,
			SavedAt: r.Clock.Now().Wall, OwnerName: cmp.Or(d.OwnerName, r.owner), Limits: r.Limits})
		if err != nil && !errors.Is(err, ErrStaleToken) && !errors.Is(err, ErrEvicted) {
			g, err = r.afterFailure(ctx, d, lineage, err)
		}
		return err
	})
	switch {
	case as == AsDiscard:
		return true, nil
	case errors.Is(err, ErrStaleToken), errors.Is(err, ErrEvicted), errors.Is(err, errUnknownOutcome):
		return false, err
	case err != nil:
		r.trouble = asError(err, CodeWriteFailed, "a draft could not be saved; it stays where it is")
		return false, nil
	}
	r.saved(g)
	r.present = content{of: g.ID, bytes: text, whole: true}
	if lineage == d.ID {
		r.remove(ctx, d, r.Drafts.Remove)
	} else { // its page may show the text, which must not be merged a second time
		r.remove(ctx, d, r.Drafts.Discard)
	}
	return true, nil
}

// saved records that g is the current generation.
func (r *reconciler) saved(g Generation) { r.all = append([]Generation{g}, superseded(r.all)...) }

var errUnknownOutcome = errors.New("it is not known whether a draft was saved")

// afterFailure returns the generation if a commit has succeeded although it has failed with that error, as if its answer was lost. This
// page must not save over a content that it does not know. If the store cannot be listed, the error matches errUnknownOutcome.
func (r *reconciler) afterFailure(ctx context.Context, d Draft, lineage string, failed error) (Generation, error) {
	all, err := r.Store.List(ctx)
	if err != nil {
		return Generation{}, &Error{Code: CodeReadFailed, Operation: OpRead, Detail: "the history could not be listed", Err: errors.Join(errUnknownOutcome, err)}
	}
	if g, saved := current(all); saved && g.Draft == lineage && g.Number == d.Number {
		return g, nil
	}
	return Generation{}, failed
}

// remove removes a contained draft. If that fails, the next editor removes it. After a removal that took too long, this editor tries no other
// one: it must edit in time.
func (r *reconciler) remove(ctx context.Context, d Draft, how func(context.Context, string, int64) error) {
	if !r.late {
		r.late = errors.Is(how(ctx, d.ID, d.Number), context.DeadlineExceeded)
	}
}

// sides returns the three sides of a draft. The base is the newest generation that is either of the draft's own lineage or the one on which
// it was typed.
func (r *reconciler) sides(ctx context.Context, d Draft, text []byte) (Conflict, error) {
	if err := r.load(ctx); err != nil {
		return Conflict{}, err
	}
	c := Conflict{Draft: d, Mine: text, Theirs: r.present.bytes}
	at, _, _ := parsePair(d.Base) // it may name a content of the server: the copy here has the same SavedAt, but another token in its ID
	i := slices.IndexFunc(r.all, func(g Generation) bool { return g.Draft == d.ID || g.ID == d.Base || g.SavedAt.UnixMilli() == at })
	if i >= 0 {
		c.Base, _ = r.Store.Read(ctx, r.all[i].ID) // if this fails, there is no base
	} else if d.Base == "" {
		c.Base = []byte{}
	}
	return c, nil
}

// merge calls Config.Merge and returns the merged content, or nil.
func (r *reconciler) merge(ctx context.Context, sides Conflict) []byte {
	merge := r.Merge
	if merge == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, mergeLimit)
	defer stop()
	answer := make(chan []byte, 1)
	go func() {
		content, err := merge(ctx, sides)
		if err != nil || content == nil {
			answer <- nil
			return
		}
		merged, err := content.Bytes()
		if err == nil && merged == nil {
			merged = []byte{}
		}
		answer <- merged
	}()
	select {
	case merged := <-answer:
		return merged
	case <-ctx.Done():
		r.Merge = nil // the other conflicts do not wait for it as well
		return nil
	}
}

// load reads the newest generation that can be read.
func (r *reconciler) load(ctx context.Context) error {
	g, saved := current(r.all)
	if !saved || r.present.of == g.ID {
		return nil
	}
	now := content{of: g.ID}
	for _, g := range r.all {
		bytes, err := r.Store.Read(ctx, g.ID)
		if err == nil {
			now.bytes, now.whole = bytes, true
			break
		}
		if !errors.Is(err, ErrCorrupted) {
			return asError(err, CodeReadFailed, "the saved content could not be read")
		}
		if now.damage == nil {
			now.damage = err
		}
	}
	r.present = now
	return nil
}
