// Package backup copies a running service into one archive, and restores it into an empty data directory.
//
// # The archive
//
// The archive is a tar file:
//
//   - holdfast-backup.json says which format the archive has and when it was made.
//   - store/000001 and further files are the pieces of one snapshot of the store, in etcd's own format.
//   - blobs/<name> are the contents. The name of a content begins with its SHA-256.
//   - end.json has the number of bytes and blobs and the SHA-256 of the snapshot. An archive without it is cut off.
//
// # What it contains
//
// The archive contains every change that was acknowledged before the backup began, and possibly later ones. While it
// is made, no server deletes a blob that the snapshot names. See [content.Store.Hold].
package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
)

const (
	// format is the newest format that this version reads, and the one that it writes.
	format    = 1
	headName  = "holdfast-backup.json"
	endName   = "end.json"
	storeDir  = "store/"
	blobDir   = "blobs/"
	pieceSize = 4 << 20
)

// head is the first file of an archive.
type head struct {
	Format int       `json:"format"`
	At     time.Time `json:"at"`
}

// Summary says what an archive contains.
type Summary struct {
	At         time.Time `json:"-"` // when the backup began
	StoreBytes int64     `json:"store_bytes"`
	StoreHash  string    `json:"store_sha256"`
	Blobs      int64     `json:"blobs"`
	BlobBytes  int64     `json:"blob_bytes"`
	// Missing are contents that the store names although their bytes are gone, and Changed those whose bytes do not
	// match their name: the service has lost them.
	Missing []string `json:"missing,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// Write writes an archive of a running service.
func Write(ctx context.Context, contents *content.Store, to io.Writer) error {
	a := archive{Writer: tar.NewWriter(to), at: time.Now()}
	intact, release, err := contents.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := a.json(headName, head{format, a.at.UTC()}); err != nil {
		return err
	}
	pieces := &pieces{archive: &a, hash: sha256.New()}
	if err := errors.Join(contents.KV.Snapshot(ctx, pieces), pieces.flush()); err != nil {
		return err
	}
	a.sum.StoreBytes, a.sum.StoreHash = pieces.written, hex.EncodeToString(pieces.hash.Sum(nil))
	err = contents.EachBlob(ctx, func(name string, kept bool) error {
		if err := intact(); err != nil {
			return err
		}
		err := a.blob(ctx, contents.Blobs, name)
		if errors.Is(err, blobs.ErrNotFound) {
			if kept {
				a.sum.Missing = append(a.sum.Missing, name)
			}
			return nil // one that was garbage before the backup began
		}
		return err
	})
	if err := errors.Join(err, intact()); err != nil {
		return err
	}
	return errors.Join(a.json(endName, a.sum), a.Close())
}

// archive writes the files of an archive.
type archive struct {
	*tar.Writer
	at  time.Time
	sum Summary
}

func (a *archive) file(name string, data []byte) error {
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: a.at}); err != nil {
		return err
	}
	_, err := a.Write(data)
	return err
}

func (a *archive) json(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return a.file(name, append(text, '\n'))
}

// blob reads the whole blob before it writes any of it. One that is not in the snapshot may be deleted meanwhile, and a file that has begun
// cannot be taken out of the archive.
func (a *archive) blob(ctx context.Context, from blobs.Blobs, name string) error {
	blob, err := from.Open(ctx, name)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(blob)
	if err = errors.Join(err, blob.Close()); err == nil {
		err = a.file(blobDir+name, data)
	}
	if err != nil {
		return fmt.Errorf("the content %s cannot be copied: %w", name, err)
	}
	if sum := sha256.Sum256(data); !content.Matches(name, sum[:]) {
		a.sum.Changed = append(a.sum.Changed, name)
	}
	a.sum.Blobs++
	a.sum.BlobBytes += int64(len(data))
	return nil
}

// pieces writes a snapshot of unknown size as files.
type pieces struct {
	*archive
	hash    hash.Hash
	number  int
	buffer  []byte
	written int64
}

func (p *pieces) Write(data []byte) (int, error) {
	p.buffer = append(p.buffer, data...)
	if len(p.buffer) >= pieceSize {
		return len(data), p.flush()
	}
	return len(data), nil
}

func (p *pieces) flush() error {
	if len(p.buffer) == 0 {
		return nil
	}
	p.number++
	p.hash.Write(p.buffer)
	p.written += int64(len(p.buffer))
	err := p.file(fmt.Sprintf("%s%06d", storeDir, p.number), p.buffer)
	p.buffer = p.buffer[:0]
	return err
}
