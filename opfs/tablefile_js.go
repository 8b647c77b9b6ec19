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

// transact makes a step: it changes the table while no other client can read or change it. If it returns an error and a
// session, the error is the answer of change, and the step was made all the same.
//
// The step is decided on the content that this client knows. Options.Tables writes it if the file still has that
// content, and otherwise returns the current content: a compare-and-swap.
func (c *FileLocks) transact(ctx context.Context, change func(*session) error) (*session, error) {
	for {
		s, refused := c.decide(c.image, change)
		c.at("decided")
		told := s
		if s == nil {
			told = &session{} // nothing is written
		}
		same, err := c.exchange(ctx, true, told)
		switch {
		case err != nil && len(told.patches) > 0:
			return nil, c.unwritten(ctx, err)
		case err != nil:
			return nil, c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
		case !same:
			continue
		case s == nil:
			return nil, refused
		}
		s.written()
		return s, refused
	}
}

// exchange makes a step if the file has the content that this client knows. Afterwards the client knows the file's
// content.
func (c *FileLocks) exchange(ctx context.Context, create bool, s *session) (same bool, err error) {
	expected, err := jsbridge.Uint8Array(c.image)
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
	err = c.onTable(ctx, create, func(file safejs.Value) (err error) {
		other, err = call(ctx, c.options.Tables, "swap", c.name, c.dir.String()+"/"+lockFile, file, expected, writes, s.size, maxImage, s.keep)
		return err
	})
	switch {
	case err != nil:
		return false, err
	case other.Type() == safejs.TypeObject:
		c.image, err = jsbridge.Bytes(other)
		return false, err
	}
	c.image = applied(c.image, s.patches, s.size)
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
func (c *FileLocks) content(ctx context.Context) ([]byte, error) {
	_, err := c.exchange(ctx, false, &session{size: -1})
	return c.image, err
}

// onTable calls use with the file. It repeats the call while another client has the file open, and some times if the
// browser does not answer.
func (c *FileLocks) onTable(ctx context.Context, create bool, use func(file safejs.Value) error) error {
	silent := 0
	for pause := shortest; ; pause = longer(pause) {
		if !c.open {
			file, err := c.dir.file(ctx, lockFile, create)
			if err != nil {
				return err
			}
			c.file, c.open = file, true
		}
		err := use(c.file)
		if unanswered(err) {
			silent++
		}
		switch {
		case err == nil:
			return nil
		case busy(err) && silent < openings:
			if err := wait.For(ctx, pause/2+rand.N(pause)); err != nil {
				return err
			}
		case isNamed(err, notFound):
			c.open = false // removed, or replaced by something else
			if !create {
				return err
			}
		default:
			c.open = false
			return c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
		}
	}
}
