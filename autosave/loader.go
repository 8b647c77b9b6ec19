package autosave

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/lock"
)

// loader fences the previous editor, and reads what earlier editors have left. It runs beside the loop. So it has a copy of the state
// that it needs, and returns what it has found.
type loader struct {
	*Config
	changes   *changes
	decisions *decisions
	lease     lock.Lease
	known     *Generation // the last one that this page has written or loaded
	lineage   string      // of the page's text; "" if that is unknown
	unsaved   unsaved
}

// loaded is the result of a loader.
type loaded struct {
	newest      *Generation // nil if the store has no current one
	content     []byte      // set if foreign is set
	foreign     bool        // the page does not show newest: it must load content
	own         *Generation // made of the text that this page shows, with the changes up to marked
	trouble     error       // newest cannot be read, and content is of an earlier one; or a draft could not be saved
	unfenced    error       // why the previous editor could not be fenced; nil if it was
	marked      int64
	unsaved     unsaved // text of this page that is not part of the content
	draftsKnown bool    // the drafts could be read
	waiting     []Draft
	sides       []Conflict
}

// maxUnfrozenLoad is the maximum time of a load of which it is certain that the page was not frozen during it. It is shorter than the half
// second in which a running page notices that its lock was stolen.
const maxUnfrozenLoad = 400 * time.Millisecond

// renewLate renews the lease if the load has taken long since began. A page that was frozen meanwhile may have lost its lease without having
// noticed it, and must not edit.
func (l *loader) renewLate(ctx context.Context, began lock.Instant) error {
	if l.Clock.Now().Since(began) < min(maxUnfrozenLoad, l.lease.HeartbeatInterval) {
		return nil
	}
	return renew(ctx, l.lease)
}

// find fences the former editor and reads. Drafts of pages that are gone become part of the content, or wait for a decision. If
// the newest generation is damaged, the newest good one replaces it. A store that can be read but not written, such as
// a full disk, does not keep the page from editing.
func (l *loader) find(ctx context.Context) (found loaded, err error) {
	ctx, stop := context.WithTimeout(ctx, writeLimit)
	defer stop()
	if err := l.Store.Fence(ctx, l.lease.Token); err != nil {
		found.unfenced = asError(err, CodeWriteFailed, "the store could not be opened")
		if errors.Is(err, ErrStaleToken) {
			return found, found.unfenced
		}
	}
	r := &reconciler{Config: *l.Config, decisions: l.decisions, token: l.lease.Token, owner: l.lease.OwnerName}
	switch r.all, err = l.Store.List(ctx); {
	case err != nil && found.unfenced != nil:
		return found, found.unfenced
	case err != nil:
		return found, asError(err, CodeReadFailed, "the history could not be listed")
	}
	found.marked = l.changes.count()
	_, saved := current(r.all)
	dirty := l.changes.dirty() || !saved && l.known != nil // after the storage was emptied, only this page has the text
	switch found.foreign = l.foreign(r.all, dirty); {
	case found.foreign:
		if err := l.keep(ctx, dirty, &found); err != nil {
			return found, err
		}
	case dirty && l.decided(ctx, r.all):
		found.foreign, found.unsaved = true, unsaved{marked: found.marked}
	default:
		r.own = l.lineage
	}
	if err := l.reconcile(ctx, r, &found, dirty); err != nil {
		return found, err
	}
	return found, l.open(ctx, r, &found)
}

// open reads the content that the page must load. If no generation is whole, the page keeps its present text.
func (l *loader) open(ctx context.Context, r *reconciler, found *loaded) error {
	found.waiting, found.sides = r.waiting, r.conflict
	if found.trouble == nil {
		found.trouble = r.trouble
	}
	g, saved := current(r.all)
	if !saved { // the others are history, which the user may restore
		return nil
	}
	found.newest = &g
	if !found.foreign {
		return nil
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if r.present.damage != nil {
		found.trouble = r.present.damage
	}
	found.content, found.foreign = r.present.bytes, r.present.whole
	return nil
}

// current returns the current generation, if there is one.
func current(all []Generation) (Generation, bool) {
	if len(all) == 0 || !all[0].Current {
		return Generation{}, false
	}
	return all[0], true
}

// foreign reports whether the page must load the current generation: it is neither the one that the page last wrote or
// loaded, nor an earlier state of the page's unsaved text.
func (l *loader) foreign(all []Generation, dirty bool) bool {
	g, saved := current(all)
	if !saved || l.known != nil && g.isBase(l.known.ID) {
		return false
	}
	return !dirty || l.lineage == "" || g.Draft != l.lineage
}

// decided reports whether a user has decided about the unsaved text of this page while the page slept and received no message. The text was
// discarded, or is kept in the history. decided applies only to a page that begins again with its text (Config.Shown). The content must still
// be the one on which the text was typed.
func (l *loader) decided(ctx context.Context, all []Generation) bool {
	g, saved := current(all)
	if !saved || l.Drafts == nil || l.known == nil || l.known.ID != l.Shown || l.lineage != l.Lineage || !g.isBase(l.known.ID) {
		return false
	}
	draft, err := l.seal(ctx, CauseLockLost)
	return err == nil && (draft == nil || slices.ContainsFunc(all, func(g Generation) bool { return g.contains(*draft) }))
}

// keep stores the unsaved text of the page, which is about to load another text. If that text was stored when the page lost the lock, and
// nothing was typed since, keep stores nothing.
func (l *loader) keep(ctx context.Context, dirty bool, found *loaded) (err error) {
	found.unsaved = l.unsaved
	if !dirty || found.marked == l.unsaved.marked && (l.unsaved.draft != nil || l.Drafts == nil) {
		return nil
	}
	found.unsaved = unsaved{marked: found.marked}
	if found.unsaved.draft, err = l.seal(ctx, CauseLockLost); errors.Is(err, ErrSnapshotFailed) {
		return err
	}
	if err == nil && found.unsaved.draft == nil && l.Drafts != nil {
		return nil // the user has discarded it
	}
	found.trouble = err
	found.unsaved.text, err = l.snapshot(ctx)
	return err
}

// reconcile decides about the drafts. If the page goes on with its own unsaved text, that text is saved before any
// other draft is read.
func (l *loader) reconcile(ctx context.Context, r *reconciler, found *loaded, dirty bool) error {
	listed := r.list(ctx)
	if errors.Is(r.trouble, ErrIncomplete) {
		return r.trouble
	}
	found.draftsKnown = r.trouble == nil && l.Drafts != nil
	if len(listed) == 0 || found.unfenced != nil {
		r.waiting = listed
		return nil //nolint:nilerr // the event that lets the page edit reports it; the drafts wait
	}
	if dirty && !found.foreign {
		g, err := l.Store.Commit(ctx, Commit{Take: l.Snapshot, Token: r.token, SavedAt: l.Clock.Now().Wall,
			OwnerName: r.owner, Limits: l.Limits})
		if errors.Is(err, ErrStaleToken) {
			return err
		}
		if err != nil {
			r.waiting, r.trouble = listed, asError(err, CodeWriteFailed, "the text of this page could not be saved, so the drafts of other pages wait")
			return nil
		}
		found.own = &g
		r.saved(g)
	}
	before, _ := current(r.all)
	if err := r.run(ctx, listed); err != nil {
		return err
	}
	now, _ := current(r.all)
	if now.ID == before.ID {
		return nil
	}
	d := found.unsaved.draft
	if found.foreign = d == nil || d.ID != now.Draft; !found.foreign {
		found.own = &now // this page's own text became the content
	}
	return nil
}
