package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
)

var (
	// ErrDamaged means that an archive is cut off or was changed.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrNewer means that a later version of this program made the archive.
	ErrNewer = errors.New("a newer version of holdfast made the backup; use that version")
)

func damaged(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, values...)...)
}

// receiver takes what an archive contains, in its order.
type receiver interface {
	store(piece io.Reader) error
	blob(name string, data io.Reader) error
}

// discard receives an archive that is only checked.
type discard struct{}

func (discard) store(piece io.Reader) error {
	_, err := io.Copy(io.Discard, piece)
	return err
}

func (d discard) blob(_ string, data io.Reader) error { return d.store(data) }

// Check reads an archive and compares it with its hashes. It fails with [ErrDamaged] and [ErrNewer].
func Check(from io.Reader) (Summary, error) { return read(from, discard{}) }

// read passes an archive to a receiver and checks it.
func read(from io.Reader, to receiver) (Summary, error) {
	r := &reader{Reader: tar.NewReader(from), to: to, storeHash: sha256.New()}
	file, err := r.next()
	if err != nil {
		return r.sum, err
	}
	var first head
	if file.Name != headName || r.json(&first) != nil || first.Format < 1 {
		return r.sum, damaged("it is no archive of holdfast backup")
	}
	if first.Format > format {
		return r.sum, ErrNewer
	}
	r.sum.At = first.At
	for {
		file, err := r.next()
		switch {
		case err != nil:
			return r.sum, err
		case file.Name == endName:
			return r.sum, r.end()
		}
		if err := r.file(file.Name, file.Size); err != nil {
			return r.sum, err
		}
	}
}

type reader struct {
	*tar.Reader
	to        receiver
	sum       Summary
	storeHash hash.Hash
	changed   []string // blobs that do not match their names
}

func (r *reader) next() (*tar.Header, error) {
	file, err := r.Next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, damaged("it is cut off")
	}
	if errors.Is(err, tar.ErrHeader) {
		return nil, damaged("it is no archive, or bytes of it were changed")
	}
	return file, err
}

const maxJSON = 64 << 20

func (r *reader) json(into any) error {
	text, err := io.ReadAll(io.LimitReader(r, maxJSON))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

func (r *reader) file(name string, size int64) error {
	switch {
	case strings.HasPrefix(name, storeDir):
		r.sum.StoreBytes += size
		return r.read(name, r.storeHash, r.to.store)
	case strings.HasPrefix(name, blobDir) && blobs.ValidName(name[len(blobDir):]):
		name := name[len(blobDir):]
		sum := sha256.New()
		err := r.read(name, sum, func(data io.Reader) error { return r.to.blob(name, data) })
		if !content.Matches(name, sum.Sum(nil)) {
			r.changed = append(r.changed, name)
		}
		r.sum.Blobs, r.sum.BlobBytes = r.sum.Blobs+1, r.sum.BlobBytes+size
		return err
	}
	return damaged("it has an unknown file %q", name)
}

// read passes the present file on and computes its hash.
func (r *reader) read(name string, sum hash.Hash, to func(io.Reader) error) error {
	err := to(io.TeeReader(r, sum))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it is cut off within %s", name)
	}
	return err
}

// end compares what was read with the last file of the archive.
func (r *reader) end() error {
	var says Summary
	if r.json(&says) != nil {
		return damaged("its end cannot be read")
	}
	for _, name := range r.changed {
		if !slices.Contains(says.Changed, name) {
			return damaged("the bytes of the content %s were changed", name)
		}
	}
	if says.StoreHash != hex.EncodeToString(r.storeHash.Sum(nil)) || says.StoreBytes != r.sum.StoreBytes {
		return damaged("the bytes of the store were changed")
	}
	if says.Blobs != r.sum.Blobs || says.BlobBytes != r.sum.BlobBytes {
		return damaged("it has %d contents of %d", r.sum.Blobs, says.Blobs)
	}
	says.At = r.sum.At
	r.sum = says
	return nil
}
