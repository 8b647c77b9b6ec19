package blobs

import (
	"fmt"
	"io"
)

// cursor is the place of the next read of a blob.
type cursor struct {
	size, offset int64
}

// Seek moves the offset.
func (c *cursor) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("a blob has no offset %d", offset)
	}
	c.offset = offset
	return offset, nil
}
