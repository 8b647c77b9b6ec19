package autosave

import (
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/lock"
)

// Pin implements [Store]. It commits an index alone, twice, with the two looks of a commit.
func (l *Layout) Pin(ctx context.Context, token int64, id, name string) (Generation, error) {
	if err := l.begin(ctx); err != nil {
		return Generation{}, err
	}
	defer l.end()
	if l.token != token || !l.fenced {
		if err := l.fence(ctx, token); err != nil {
			return Generation{}, err
		}
	}
	if err := l.unchanged(ctx); err != nil {
		return Generation{}, err
	}
	next := slices.Clone(l.top.generations)
	i := slices.IndexFunc(next, is(id))
	if i < 0 {
		return Generation{}, &Error{Code: CodeNotFound, Operation: OpRead, Resource: id, Detail: "it does not exist, or is no longer kept"}
	}
	next[i].Name = validText(name)
	l.abandonPreopened()
	for copies := range 2 { // if one of them is damaged later, only the other one has the name
		written, err := l.put(ctx, encodeIndex(next))
		if err != nil && copies == 0 {
			return Generation{}, err
		}
		if err == nil {
			l.top = index{written, next}
		}
	}
	return next[i], l.unchanged(ctx)
}

// unchanged finds out whether anything has happened since the last write under this token.
func (l *Layout) unchanged(ctx context.Context) error {
	names, err := l.indexes(ctx)
	if err != nil {
		return asError(err, CodeWriteFailed, "the storage could not be looked at")
	}
	return l.check(names)
}

// abandonPreopened abandons the files that were made for the next commit, because they may be open. The next commit removes
// them.
func (l *Layout) abandonPreopened() {
	if l.nextAt != 0 {
		l.nextAt, l.messy = 0, true
		l.lastAt++
		l.number++
	}
}

// is returns a predicate that finds a generation by its id, which may be [Current].
func is(id string) func(Generation) bool {
	return func(g Generation) bool { return g.ID == id || id == Current && g.Current }
}

// maxName is the maximum length of the name of a pinned generation, in characters. Every index contains the name.
const maxName = 256

// Pin gives a generation a name and keeps it: it is never removed to make room, and does not count towards either
// limit. With an empty name it loses its pin. The id may be [Current]. Only the page that edits may pin.
//
// Errors match ErrReadOnly, ErrDisabled, ErrDisposed, or those of [Store]. They match ErrInvalidArgument if the name is
// longer than 256 characters. If ctx has ended, its cause is returned, and the generation may be pinned or not.
func (s *Saver) Pin(ctx context.Context, id, name string) (Generation, error) {
	if utf8.RuneCountInString(name) > maxName {
		return Generation{}, &Error{Code: CodeInvalidArgument, Detail: "name must not be longer than 256 characters"}
	}
	ctx, stop := bounded(ctx)
	defer stop()
	return s.generation(ctx, func(result chan outcome) { s.pin(id, name, result) })
}

func (p *page) pin(id, name string, result chan outcome) {
	if p.role != editing {
		result <- outcome{err: p.refusal()}
		return
	}
	token, term := p.lease.Token, p.term
	p.work.Go(func() {
		ctx, stop := context.WithTimeout(p.life, writeLimit)
		defer stop()
		g, err := p.config.Store.Pin(ctx, token, id, name)
		if err != nil {
			err = asError(err, CodeWriteFailed, "the generation could not be pinned")
		}
		p.do(func() {
			switch {
			case err == nil && p.newest != nil && p.newest.ID == g.ID:
				p.newest = &g
			case errors.Is(err, ErrStaleToken) && p.term == term:
				p.release()
				p.readonly(lock.ReasonLeaseLost, err)
			default:
				p.emptied(err)
			}
		})
		result <- outcome{g, err}
	})
}
