package kv

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// ReadWatched calls load with all keys that begin with prefix, in order, as of a revision, and then f with all later changes, like
// [Store.Watch]. Unlike [Store.Each], it needs no revision that stays: it reads each page of at most limit keys as it is at that moment, and
// watches the changes meanwhile. One watch covers the read, load and the time after it, so a store whose history is compacted again and again
// may take long in load, but all keys are in memory at once. ReadWatched fails like Watch, and when a page cannot be read.
func (s *Store) ReadWatched(ctx context.Context, prefix string, limit int64, load func([]Entry, int64), f func([]Change) error) error {
	_, revision, err := s.Get(ctx, prefix)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	changes, ended := make(chan []Change), make(chan error, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		ended <- s.Watch(ctx, prefix, revision, func(c []Change) error {
			select {
			case changes <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	read := make(chan pagesRead, 1)
	go func() { read <- s.readPages(ctx, prefix, limit) }()
	w := watchedRead{last: map[string]Change{}, revision: revision}
	for err == nil && !w.complete() {
		select {
		case c := <-changes:
			w.see(c)
		case p := <-read:
			w.pages, err = &p, p.err
		case err = <-ended:
		}
	}
	if err == nil {
		load(w.entries(), w.revision)
	}
	for w = (watchedRead{}); err == nil; {
		select {
		case c := <-changes:
			err = f(c)
		case err = <-ended:
		}
	}
	stop()
	watching.Wait()
	return err
}

// pagesRead are keys of different moments.
type pagesRead struct {
	entries []Entry
	newest  int64 // the latest revision that changed one of them
	err     error
}

func (s *Store) readPages(ctx context.Context, prefix string, limit int64) (p pagesRead) {
	_, p.err = s.pages(ctx, prefix, limit, false, func(page []Entry) error {
		for _, e := range page {
			p.newest = max(p.newest, e.Modified)
		}
		p.entries = append(p.entries, page...)
		return nil
	})
	return p
}

// watchedRead collects the state of a revision from pages and from the changes meanwhile.
type watchedRead struct {
	pages    *pagesRead // nil: not read yet
	last     map[string]Change
	revision int64 // of the last change
}

func (w *watchedRead) see(changes []Change) {
	for _, c := range changes {
		w.last[c.Key] = c
	}
	w.revision = changes[len(changes)-1].Modified
}

// complete reports whether the watch has shown every change that the pages contain.
func (w *watchedRead) complete() bool { return w.pages != nil && w.revision >= w.pages.newest }

// entries returns the state at the revision of the last change: what has changed since the beginning is as the watch has shown it.
func (w *watchedRead) entries() []Entry {
	all := slices.DeleteFunc(w.pages.entries, func(e Entry) bool { _, changed := w.last[e.Key]; return changed })
	for _, c := range w.last {
		if !c.Deleted {
			all = append(all, c.Entry)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return all
}
