package autosave

import (
	"context"
	"errors"
	"io/fs"
	"slices"
)

// looks is how often a reader looks again after the writer has removed the file that it was about to read.
const looks = 5

// List implements [Store]. If a later editor has begun to take over, it may not take over everything that the index lists.
func (l *Layout) List(ctx context.Context) ([]Generation, error) {
	found, err := l.present(ctx)
	if err != nil {
		return nil, err
	}
	names, err := l.indexes(ctx) // after the index was read: an editor that begins from now on takes it over
	if err != nil {
		return nil, asError(err, CodeReadFailed, "the storage could not be looked at")
	}
	generations := slices.Clone(found.generations)
	if token := found.name.token; token > 0 && stale(names, token) != nil {
		for i := range generations {
			generations[i].Draft = ""
		}
	}
	slices.Reverse(generations)
	return generations, nil
}

// present returns the newest valid index, or one without a name for the generations that no index lists.
func (l *Layout) present(ctx context.Context) (index, error) {
	for range looks {
		names, err := l.indexes(ctx)
		if err != nil {
			return index{}, asError(err, CodeReadFailed, "the storage could not be looked at")
		}
		found, _, err := l.highest(ctx, names)
		if err != nil {
			return index{}, asError(err, CodeReadFailed, "the index could not be read")
		}
		if found != nil {
			return *found, nil
		}
		if len(names) == 0 {
			break // otherwise the writer may have removed the listed file
		}
	}
	generations, err := l.orphans(ctx, nil, nil)
	if err != nil {
		return index{}, asError(err, CodeReadFailed, "the history could not be looked at")
	}
	return index{generations: generations}, nil
}

// Read implements [Store].
func (l *Layout) Read(ctx context.Context, id string) ([]byte, error) {
	var err error
	for range looks {
		var found index
		if found, err = l.present(ctx); err != nil {
			return nil, err
		}
		g, ok := find(found.generations, id)
		if !ok {
			return nil, &Error{Code: CodeNotFound, Operation: OpRead, Resource: id, Detail: "it does not exist, or is no longer kept"}
		}
		var content []byte
		if content, err = l.read(ctx, g); !errors.Is(err, ErrCorrupted) {
			return content, err
		}
		found, _ = l.present(ctx)
		if _, still := find(found.generations, g.ID); still {
			return nil, err
		} // otherwise it was collected between the two looks
	}
	return nil, err
}

func find(generations []Generation, id string) (Generation, bool) {
	i := slices.IndexFunc(generations, is(id))
	if i < 0 {
		return Generation{}, false
	}
	return generations[i], true
}

// read returns the content of g after it has verified it.
func (l *Layout) read(ctx context.Context, g Generation) ([]byte, error) {
	file, err := l.files.Read(ctx, FolderHistory, g.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Code: CodeCorrupted, Operation: OpRead, Resource: g.ID, Detail: "its file is missing; other generations can be restored", Err: err}
	}
	if err != nil {
		return nil, asError(err, CodeReadFailed, "the generation could not be read")
	}
	content := file[:min(g.Bytes, int64(len(file)))] // a seal may follow
	sum, err := l.digest(ctx, content)
	if err != nil {
		return nil, asError(err, CodeReadFailed, "the checksum could not be made")
	}
	if sum != g.SHA256 || int64(len(content)) != g.Bytes {
		return nil, &Error{Code: CodeCorrupted, Operation: OpRead, Resource: g.ID, Detail: "its content is not what was saved; other generations can be restored"}
	}
	return content, nil
}

// collect removes the generations that are gone, the indexes before the last two, and after a failure the files that no
// index lists. Files that cannot be removed now are left to the next commit or editor: an index that a frozen page has
// open stays while it is open.
func (l *Layout) collect(ctx context.Context, names []indexName, gone []Generation) {
	for i, n := range names {
		if i > 1 {
			_ = l.files.Remove(ctx, FolderIndex, n.String()) // it is listed again
		}
	}
	failed := false
	remove := func(id string) {
		failed = l.files.Remove(ctx, FolderHistory, id) != nil || failed
	}
	for _, g := range gone {
		remove(g.ID)
	}
	if l.messy {
		listed, err := l.files.List(ctx, FolderHistory)
		for _, id := range listed {
			at, token, ok := parsePair(id)
			_, known := find(l.top.generations, id)
			// A file with a higher token belongs to a successor that just begins.
			next := token == l.token && at == l.nextAt
			if ok && !known && !next && token <= l.token {
				remove(id)
			}
		}
		failed = failed || err != nil
	}
	l.messy = failed
}
