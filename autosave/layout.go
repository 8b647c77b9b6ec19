package autosave

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"time"
)

// The folders of a [Layout].
const (
	FolderIndex   = "index"
	FolderHistory = "history"
)

// Layout is the [Store] over [Files]. It uses these files:
//
//	history/<made>-<token>        the content of one generation, unchanged, and its seal; empty before it is written
//	index/<token>-<number>.json   the list of generations, the current one last
//
// The newest valid index is authoritative; a commit writes a new one. No file is written twice. An editor may be frozen
// in the middle of a commit, and wake after its successor has written. It does no harm: its files carry its own, lower
// token.
//
// A takeover loses no acknowledged commit because of an order, as in Dekker's algorithm: Fence makes an index of its
// own and then looks for others; a commit writes its index and then looks for others. At least one of the two sees the
// other, and either the commit is refused or its generation is taken over. The index of Fence is empty and lists
// nothing. If an editor is killed at that point, its successor goes on with the index below, which may have been
// written since. Fence writes the generations that it takes over in the same way as a commit.
type Layout struct {
	files  Files
	digest Digest
	turn   chan struct{} // capacity 1, filled by the writer; guards the fields below

	token  int64    // of the last Fence
	fenced bool     // the last Fence succeeded
	number int64    // of the next index under the token
	top    index    // the last one written
	lastAt int64    // time of the last generation that was begun
	nextAt int64    // time in the name of the next one under the token, if its file was made already
	messy  bool     // there may be files that no index lists
	failed []string // the generations whose commits have failed here: they count only if an index lists them
}

// index is an index file that was read or written.
type index struct {
	name        indexName
	generations []Generation // in the order of their commits
}

// NewLayout returns the store over files. Any number of pages may have one over the same files.
func NewLayout(files Files, digest Digest) *Layout {
	return &Layout{files: files, digest: digest, turn: make(chan struct{}, 1)}
}

// begin waits for the turn to write.
func (l *Layout) begin(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &Error{Code: CodeWriteFailed, Detail: "an earlier write has not come back", Err: context.Cause(ctx)}
	}
}

func (l *Layout) end() { <-l.turn }

// Fence implements [Store].
func (l *Layout) Fence(ctx context.Context, token int64) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer l.end()
	return l.fence(ctx, token)
}

func (l *Layout) fence(ctx context.Context, token int64) error {
	names, err := l.look(ctx, token)
	if err != nil {
		return err
	}
	if l.token == token && l.fenced {
		return nil
	}
	l.token, l.fenced, l.messy, l.nextAt = token, false, true, 0
	if len(names) > 0 && names[0].token == token {
		l.number = max(l.number, names[0].number+1)
	}
	own, err := l.put(ctx, nil)
	if err != nil {
		return err
	}
	if err := l.takeOver(ctx, own); err != nil {
		_ = l.files.Remove(ctx, FolderIndex, own.String()) // attempts must not pile up; nothing depends on it yet
		return err
	}
	_, err = l.look(ctx, token)
	if l.fenced = err == nil; l.fenced && l.failed != nil {
		l.collect(ctx, nil, nil) // the next commit does not build on them: a successor that finds both would take them for earlier history
	}
	return err
}

// takeOver writes an index with the generations that earlier editors have left. own is the empty index of this fence.
func (l *Layout) takeOver(ctx context.Context, own indexName) error {
	names, err := l.look(ctx, l.token)
	if err != nil {
		return err
	}
	base, err := l.salvage(ctx, slices.DeleteFunc(names, func(n indexName) bool { return n == own }))
	if err != nil {
		return asError(err, CodeWriteFailed, "the saved content could not be read")
	}
	name, err := l.put(ctx, encodeIndex(base))
	if err == nil {
		l.top = index{name, base}
	}
	return err
}

// look returns the names of all index files, the highest first. It fails if an editor has a higher token.
func (l *Layout) look(ctx context.Context, token int64) ([]indexName, error) {
	names, err := l.indexes(ctx)
	if err != nil {
		return nil, asError(err, CodeWriteFailed, "the storage could not be looked at")
	}
	return names, stale(names, token)
}

// stale returns an error if an editor has a higher token.
func stale(names []indexName, token int64) error {
	if len(names) > 0 && names[0].token > token {
		return &Error{Code: CodeStaleToken, Detail: "another page has become the editor since; what it saved stays",
			Err: &LaterToken{names[0].token}}
	}
	return nil
}

// Commit implements [Store].
func (l *Layout) Commit(ctx context.Context, c Commit) (Generation, error) {
	if err := l.begin(ctx); err != nil {
		return Generation{}, err
	}
	defer l.end()
	if l.token != c.Token || !l.fenced {
		if err := l.fence(ctx, c.Token); err != nil {
			return Generation{}, err
		}
	}
	g, names, gone, err := l.write(ctx, c)
	if err != nil {
		return Generation{}, err
	}
	c.progress(PhaseGC)
	l.nextAt = l.lastAt + 1
	l.files.Preopen(generationID(l.nextAt, l.token), indexName{l.token, l.number}.String()) // for the next commit
	c.committed(g)
	runtime.Gosched() // a caller that waited for the commit runs first; it may have ended ctx
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer stop()
	l.collect(ctx, names, gone)
	return g, nil
}

// attempts bounds how often a commit is begun again because the storage does not open its files.
const attempts = 4

// write writes the content and an index that lists it, under other names if the storage does not open a file. It
// returns the names of the indexes afterwards, and the generations that the new index no longer lists.
func (l *Layout) write(ctx context.Context, c Commit) (g Generation, names []indexName, gone []Generation, err error) {
	c.progress(PhaseWriting)
	for range attempts {
		if g, names, gone, err = l.attempt(ctx, c); !errors.Is(err, ErrNotOpened) || ctx.Err() != nil {
			break
		}
	}
	return g, names, gone, err
}

// attempt is one attempt of write.
func (l *Layout) attempt(ctx context.Context, c Commit) (g Generation, names []indexName, gone []Generation, err error) {
	g = l.generation(c)
	next := index{name: l.name()}
	encoded := false
	listed, err := l.files.Save(ctx, Saving{Name: g.ID, Index: next.name.String(),
		Take: func(ctx context.Context) (Content, error) {
			taken, err := c.Taken(ctx) // again for every attempt, because a read content may be used up
			g.describe(taken)
			return taken.Content, err
		},
		Note: func() string { return encodeNote(g, c.Aside) },
		Encode: func(bytes int64, sum string, listed []string) ([]byte, error) {
			if err := l.check(indexNames(listed)); err != nil {
				return nil, err
			}
			c.sized(bytes)
			c.progress(PhaseIndex)
			g.Bytes, g.SHA256 = bytes, sum
			gone, next.generations = c.Limits.kept(l.with(&g, c.Aside))
			if slices.ContainsFunc(gone, is(g.ID)) { // so it was committed aside
				return nil, &Error{Code: CodeQuota, Detail: "the limits of the history leave no space for it"}
			}
			encoded = true
			return encodeIndex(next.generations), nil
		}})
	if err != nil {
		if encoded && !errors.Is(err, ErrNotBegun) {
			// The index may exist, so its generation must exist too. The next commit first writes a whole index above,
			// so that the highest one is never torn for long.
			l.messy, l.fenced, l.failed = true, false, append(l.failed, g.ID)
			return g, nil, nil, asError(err, CodeWriteFailed, "the index could not be written")
		}
		switch {
		case errors.Is(err, ErrNotOpened):
			l.messy = true
		case !errors.Is(err, ErrStaleToken): // otherwise a successor may have taken this generation over, and removes its files
			l.discard(ctx, g, next.name)
		}
		return g, nil, nil, asError(err, CodeWriteFailed, "the content could not be written")
	}
	l.top = next
	names = indexNames(listed)
	return g, names, gone, l.check(names) // a successor removes the files of this generation
}

// with returns the generations of the last index and a new one: the current one or, if aside is set, the one before it.
func (l *Layout) with(g *Generation, aside bool) []Generation {
	last := len(l.top.generations) - 1
	if !aside || last < 0 {
		return append(superseded(l.top.generations), *g)
	}
	g.Current = false
	return append(slices.Clone(l.top.generations[:last]), *g, l.top.generations[last])
}

// discard removes the files of a commit whose index was not begun.
func (l *Layout) discard(ctx context.Context, g Generation, name indexName) {
	_ = l.files.Remove(ctx, FolderIndex, name.String()) // it is listed again
	l.messy = l.files.Remove(ctx, FolderHistory, g.ID) != nil || l.messy
}

// check finds out whether anything has happened since the last write under this token.
func (l *Layout) check(names []indexName) error {
	if err := stale(names, l.token); err != nil {
		return err
	}
	if !slices.Contains(names, l.top.name) {
		l.token, l.fenced = 0, false // the next commit starts over with the files that exist
		return &Error{Code: CodeEvicted, Detail: "the browser has cleared the storage; what is open is saved again"}
	}
	return nil
}

// generation names the generation to write. No name is used twice, whatever happened to the file, even if the clock was
// set back.
func (l *Layout) generation(c Commit) Generation {
	l.lastAt = max(c.SavedAt.UnixMilli(), l.lastAt+1)
	g := begun(cmp.Or(l.nextAt, l.lastAt), c.Token)
	l.nextAt = 0
	g.SavedAt, g.Current = time.UnixMilli(l.lastAt), true
	return g
}

// superseded returns a copy in which no generation is the current one.
func superseded(generations []Generation) []Generation {
	copied := slices.Clone(generations)
	for i := range copied {
		copied[i].Current = false
	}
	return copied
}

// name returns the name of the next index.
func (l *Layout) name() indexName {
	l.number++
	return indexName{l.token, l.number - 1}
}

// put writes the next index.
func (l *Layout) put(ctx context.Context, content []byte) (indexName, error) {
	name := l.name()
	if err := l.files.Write(ctx, FolderIndex, name.String(), content); err != nil {
		_ = l.files.Remove(ctx, FolderIndex, name.String()) // a full storage needs the room; otherwise it is listed again
		l.messy = true
		return name, asError(err, CodeWriteFailed, "the index could not be written")
	}
	return name, nil
}

// indexes returns the names of all index files, the highest first.
func (l *Layout) indexes(ctx context.Context) ([]indexName, error) {
	listed, err := l.files.List(ctx, FolderIndex)
	if err != nil {
		return nil, err
	}
	return indexNames(listed), nil
}

func indexNames(listed []string) (names []indexName) {
	for _, s := range listed {
		if n, ok := parseIndexName(s); ok {
			names = append(names, n)
		}
	}
	order(len(names), func(i, j int) bool { return names[i].compare(names[j]) > 0 },
		func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// highest reads the first whole index of the named ones, or returns nil if there is none, and the tokens of the empty
// or damaged ones above it.
func (l *Layout) highest(ctx context.Context, names []indexName) (found *index, above []int64, err error) {
	for _, n := range names {
		content, err := l.files.Read(ctx, FolderIndex, n.String())
		if errors.Is(err, fs.ErrNotExist) {
			continue // collected since it was listed, or not yet committed
		}
		if err != nil {
			return nil, nil, err
		}
		if generations, err := decodeIndex(content); err == nil {
			return &index{n, generations}, above, nil
		}
		above = append(above, n.token) // damaged, of a fence, or opened before its generation is whole
	}
	return nil, above, nil
}
