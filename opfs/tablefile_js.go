//go:build js && wasm

package opfs

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// tableFile is the file of the table, as one client knows it. One goroutine at a time may use it.
type tableFile struct {
	dir    *Dir
	client string       // the name of this client in its requests
	tables safejs.Value // Options.Tables

	file  safejs.Value // where opened
	open  bool
	image []byte // the last known content
}

func (f *tableFile) path() string { return f.dir.String() + "/" + lockFile }

// explain adds to an error what is known about the file.
func (f *tableFile) explain(ctx context.Context, err error) error {
	return f.dir.explain(ctx, f.path(), err)
}

// exchange makes a step if the file has the content that this client knows. Afterwards the client knows the file's
// content.
func (f *tableFile) exchange(ctx context.Context, create bool, s *session) (same bool, err error) {
	expected, err := jsbridge.Uint8Array(f.image)
	if err != nil {
		return false, err
	}
	writes := make([]any, len(s.patches))
	for i, p := range s.patches {
		data, err := jsbridge.Uint8Array(p.data)
		if err != nil {
			return false, err
		}
		writes[i] = map[string]any{"at": p.offset, "data": data}
	}
	var other safejs.Value
	err = f.use(ctx, create, func(file safejs.Value) (err error) {
		other, err = call(ctx, f.tables, "swap", f.client, f.path(), file, expected, writes, s.size, maxImage, s.keep)
		return err
	})
	switch {
	case err != nil:
		return false, err
	case other.Type() == safejs.TypeObject:
		f.image, err = jsbridge.Bytes(other)
		return false, err
	}
	f.image = applied(f.image, s.patches, s.size)
	return true, nil
}

// applied returns the content of a file after the patches were written to it.
func applied(image []byte, patches []patch, size int) []byte {
	image = slices.Clone(image)
	for _, p := range patches {
		if grow := p.offset + len(p.data) - len(image); grow > 0 {
			image = append(image, make([]byte, grow)...)
		}
		copy(image[p.offset:], p.data)
	}
	if size > 0 {
		image = image[:size]
	}
	return image
}

// content returns the file's content, or a NotFoundError if there is no file.
func (f *tableFile) content(ctx context.Context) ([]byte, error) {
	_, err := f.exchange(ctx, false, &session{size: -1, keep: true})
	return f.image, err
}

// use calls do with the file. It repeats the call while another client has the file open, and some times if the
// browser does not answer.
func (f *tableFile) use(ctx context.Context, create bool, do func(file safejs.Value) error) error {
	silent := 0
	for pause := shortest; ; pause = longer(pause) {
		if !f.open {
			file, err := f.dir.file(ctx, lockFile, create)
			if err != nil {
				return err
			}
			f.file, f.open = file, true
		}
		err := do(f.file)
		if unanswered(err) {
			silent++
		}
		switch {
		case err == nil:
			return nil
		case busy(err) && silent < openings:
			f.open = false
			f.dir.forget() // a former handle may lead to a file that this client keeps open itself, see Table.#dropRemoved of tables.js
			if err := wait.For(ctx, pause/2+rand.N(pause)); err != nil {
				return err
			}
		case isNamed(err, notFound):
			f.open = false // removed, or replaced by something else
			if !create {
				return err
			}
		default:
			f.open = false
			return f.explain(ctx, err)
		}
	}
}
