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
func (c *FileLocks) transact(ctx context.Context, change func(*session) error) (*session, error) {
	if helped() {
		return c.swap(ctx, change)
	}
	h, err := c.openTable(ctx, true)
	if err != nil {
		return nil, err
	}
	defer h.close()
	c.at("opened")
	image, err := h.read(ctx, maxImage)
	if err != nil {
		return nil, c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
	}
	c.at("read")
	s, refused := c.decide(image, change)
	if s == nil {
		return nil, refused
	}
	for _, p := range s.patches {
		if err := h.write(ctx, p.offset, p.data); err != nil {
			return nil, c.unwritten(ctx, err)
		}
	}
	if s.size > 0 {
		if _, err := call(ctx, h.value, "truncate", s.size); err != nil {
			return nil, c.unwritten(ctx, err)
		}
	}
	s.written()
	return s, refused
}

// swap is transact by way of the helper. Messages to and fro take time, and a page may be
// frozen between any two of them; it must not have the file open then. So a step is
// decided on the content as this client knows it, and the helper writes it where the
// content is still that, or else tells what it is now: a compare-and-swap.
func (c *FileLocks) swap(ctx context.Context, change func(*session) error) (*session, error) {
	for {
		s, refused := c.decide(c.image, change)
		var patches []patch
		size := 0
		if s != nil {
			patches, size = s.patches, s.size
		}
		c.at("read")
		now, same, err := c.exchange(ctx, true, patches, size)
		switch {
		case err != nil && len(patches) > 0:
			return nil, c.unwritten(ctx, err)
		case err != nil:
			return nil, c.dir.explain(ctx, c.dir.String()+"/"+lockFile, err)
		}
		c.image = now
		switch {
		case !same:
			continue
		case s == nil:
			return nil, refused
		}
		s.written()
		return s, refused
	}
}

// exchange has the helper apply patches where the file has the content that this client
// knows. It returns what the file has afterwards.
func (c *FileLocks) exchange(ctx context.Context, create bool, patches []patch, size int) (now []byte, same bool, err error) {
	expected, err := jsbridge.Uint8Array(c.image)
	if err != nil {
		return nil, false, err
	}
	writes := make([]any, len(patches))
	for i, p := range patches {
		data, err := jsbridge.Uint8Array(p.data)
		if err != nil {
			return nil, false, err
		}
		writes[i] = map[string]any{"at": p.offset, "data": data}
	}
	var other safejs.Value
	err = c.onTable(ctx, create, func(file safejs.Value) (err error) {
		other, err = call(ctx, helper, "swap", file, expected, writes, size, maxImage)
		return err
	})
	switch {
	case err != nil:
		return nil, false, err
	case other.Type() == safejs.TypeObject:
		now, err = jsbridge.Bytes(other)
		return now, false, err
	}
	return applied(c.image, patches, size), true, nil
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
func (c *FileLocks) content(ctx context.Context) (image []byte, err error) {
	if helped() {
		c.image, _, err = c.exchange(ctx, false, nil, 0)
		return c.image, err
	}
	h, err := c.openTable(ctx, false)
	if err != nil {
		return nil, err
	}
	defer h.close()
	return h.read(ctx, maxImage)
}

// openTable opens the file for this client alone.
func (c *FileLocks) openTable(ctx context.Context, create bool) (h *handle, err error) {
	err = c.onTable(ctx, create, func(file safejs.Value) (err error) {
		h, err = openHandle(ctx, file)
		return err
	})
	return h, err
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
