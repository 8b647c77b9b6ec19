//go:build js && wasm

package opfs

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/lock"
)

// alive is the folder of liveness files, as one client sees it. The client's own file is open from before its first
// entry in the table until after its last one. A name is never used again, so a client that is gone stays gone.
type alive struct {
	dir  *Dir
	id   string  // of this client while its file is open
	file *handle // nil while it is closed
}

// begin opens a file of a new name.
func (a *alive) begin(ctx context.Context) error {
	silent := 0
	for pause := shortest; ; pause = longer(pause) {
		id := lock.NewID()
		file, err := a.dir.file(ctx, id, true)
		if err != nil {
			return err
		}
		opened, err := openHandle(ctx, file)
		if unanswered(err) {
			silent++
		}
		switch {
		case err == nil:
			a.id, a.file = id, opened // a former file stays open: Chromium never ends the closing of a removed one
			return nil
		case silent == openings:
			return a.dir.explain(ctx, a.dir.String(), err)
		case isNamed(err, notFound) || busy(err):
			// Another client removed the file before it was open, or the browser does not answer: take a new name.
			if err := wait.For(ctx, pause/2+rand.N(pause)); err != nil {
				return err
			}
		default:
			return a.dir.explain(ctx, a.dir.String(), err)
		}
	}
}

// ended reports whether the file was closed because the helper ended.
func (a *alive) ended() bool { return a.file != nil && a.file.ended() }

// removed reports whether the file of this client is gone. While it is open, only the browser can remove it: the site's data was cleared.
func (a *alive) removed(ctx context.Context) bool {
	_, err := a.dir.file(ctx, a.id, false)
	return isNamed(err, notFound)
}

// end closes the file and removes it.
func (a *alive) end(ctx context.Context) {
	if a.file != nil {
		if !a.removed(ctx) {
			a.file.close()
		}
		a.file = nil
		_ = a.dir.remove(ctx, a.id)
	}
}

// gone reports whether another client has ended, and cleans up after it. A client counts as living while nothing is
// known about it. A client that opens its file between the probe and the removal also counts as living, because the
// removal then fails.
func (a *alive) gone(ctx context.Context, client string) bool {
	if client == a.id {
		return false
	}
	file, err := a.dir.file(ctx, client, false)
	if err == nil {
		if err = probe(ctx, file); err == nil {
			if a.file != nil {
				if _, err := a.dir.file(ctx, a.id, false); err != nil {
					return false // the site's data was cleared: a former handle of the folder does not show who has the file open
				}
			}
			err = a.dir.remove(ctx, client)
			return err == nil || !busy(err) && jsbridge.ExceptionName(err) != "" // not opened in between, as far as is known
		}
	}
	return isNamed(err, notFound)
}

// others lists the other clients that have a file; some may be gone.
func (a *alive) others(ctx context.Context) (clients []string, err error) {
	names, err := a.dir.names(ctx)
	return slices.DeleteFunc(names, func(name string) bool { return name == a.id }), err
}

// living returns the clients that live, and removes the files of the others.
func (a *alive) living(ctx context.Context, clients []string) (living []string) {
	for _, client := range clients {
		if !a.gone(ctx, client) {
			living = append(living, client)
		}
	}
	return living
}
