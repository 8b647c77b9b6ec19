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

// transact makes a step: it changes the table, while nobody else can read or change it.
// An error beside a session is the answer of change; the step was made all the same.
//
// The step is decided on the content as this client knows it. Options.Tables writes it
// where the content is still that, or else tells what it is now: a compare-and-swap.
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

// exchange makes a step where the file has the content that this client knows. Afterwards
// the client knows what the file has.
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

// applied returns what a file of this content has after the patches were written to it.
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

// content returns what the file has, or a NotFoundError where there is none.
func (c *FileLocks) content(ctx context.Context) ([]byte, error) {
	_, err := c.exchange(ctx, false, &session{size: -1})
	return c.image, err
}

// onTable calls use with the file, again and again for as long as the file cannot be opened
// because somebody else has it open, and some times where the browser does not answer.
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
			c.open = false // removed, or something else in its place
			if !create {
				return err
			}
		default:
			c.open = false
			return c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
		}
	}
}
