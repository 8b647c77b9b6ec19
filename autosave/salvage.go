package autosave

import (
	"context"
	"errors"
	"io/fs"
	"slices"
)

// salvage returns the generations of the new editor: the generations of the highest whole index, and the generations that
// only a higher index may have listed. A higher index may be damaged, or empty although it was written: some systems
// truncate a file in a power loss. If no index is whole, all generations in the history count. To restore a commit that
// was killed at its last step does no harm; to lose an acknowledged commit would.
//
// Only the editors of the higher indexes count. The store refused a former editor that wrote after it woke.
func (l *Layout) salvage(ctx context.Context, names []indexName) ([]Generation, error) {
	found, above, err := l.highest(ctx, names)
	if err != nil {
		return nil, err
	}
	counts := func(g Generation) bool { return !slices.Contains(l.failed, g.ID) }
	if found == nil {
		return l.orphans(ctx, nil, counts)
	}
	if len(above) == 0 {
		return found.generations, nil
	}
	return l.orphans(ctx, found.generations, func(g Generation) bool {
		return slices.Contains(above, g.Token) && newer(g, found.generations) && counts(g)
	})
}

// orphans returns the generations of base and the wanted generations in the history that no index lists; nil wants all.
// They come after the generations of base, but a generation that was committed aside comes before the current one. A file
// without its seal is torn, or was created in advance for a commit that never happened.
func (l *Layout) orphans(ctx context.Context, base []Generation, wanted func(Generation) bool) ([]Generation, error) {
	listed, err := l.files.List(ctx, FolderHistory)
	if err != nil {
		return nil, err
	}
	var orphans, asides []Generation
	for _, id := range listed {
		made, token, ok := parsePair(id)
		if !ok || wanted != nil && !wanted(begun(made, token)) {
			continue
		}
		g, aside, whole, err := l.orphan(ctx, begun(made, token))
		switch {
		case err != nil:
			return nil, err
		case whole && aside:
			asides = append(asides, g)
		case whole:
			orphans = append(orphans, g)
		}
	}
	byTime(orphans)
	byTime(asides)
	all := append(superseded(base), orphans...)
	last := max(0, len(all)-1)
	all = append(all[:last:last], append(asides, all[last:]...)...)
	if n := len(all); n > 0 {
		all[n-1].Current = true
	}
	return all, nil
}

// byTime orders generations by the time of their writes.
func byTime(all []Generation) {
	written := func(i int) indexName { made, token, _ := parsePair(all[i].ID); return indexName{token, made} }
	order(len(all), func(i, j int) bool { return written(i).compare(written(j)) < 0 },
		func(i, j int) { all[i], all[j] = all[j], all[i] })
}

// orphan reads the file of a generation and reports whether it is whole, and whether it was committed aside.
func (l *Layout) orphan(ctx context.Context, g Generation) (_ Generation, aside, whole bool, err error) {
	file, err := l.files.Read(ctx, FolderHistory, g.ID)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return g, false, false, err
	}
	content, sum, note, ok := sealed(file)
	if !ok {
		return g, false, false, nil
	}
	g, aside = decodeNote(g, note)
	g.Bytes = int64(len(content))
	g.SHA256, err = l.digest(ctx, content)
	return g, aside, g.SHA256 == sum, err
}

// newer reports whether g came after all of them.
func newer(g Generation, generations []Generation) bool {
	return !slices.ContainsFunc(generations, func(other Generation) bool {
		return other.Token > g.Token || other.Token == g.Token && !other.SavedAt.Before(g.SavedAt)
	})
}
