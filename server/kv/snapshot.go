package kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Snapshot writes a copy of the whole store to w, in etcd's own format: the database, then its SHA-256. The copy
// contains every change that was committed before the call. While w is slow, the database grows, because it cannot
// reuse space. It fails with [ErrShared] if the cluster has keys of others, which the copy would contain.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	if s.shared {
		return ErrShared
	}
	if s.dial == nil {
		return s.snapshot(ctx, w)
	}
	// The copy is that of one member. Before it, a linearizable read must reach the same member, which then has
	// everything that was committed.
	var failed error
	for _, endpoint := range s.client.Endpoints() {
		member, err := s.dial(endpoint)
		if err != nil {
			return err
		}
		to := &countingWriter{to: w}
		err = errors.Join(member.snapshot(ctx, to), member.Close())
		if err == nil || to.written > 0 || ctx.Err() != nil {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *Store) snapshot(ctx context.Context, w io.Writer) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a transfer whose writer has failed
	from, err := s.client.Snapshot(ctx)
	if err != nil {
		return plainError(err)
	}
	defer func() { _ = from.Close() }()
	check := newSnapshotCheck()
	if _, err := io.Copy(io.MultiWriter(w, check), from); err != nil {
		return fmt.Errorf("the copy of the store did not arrive whole: %w", err)
	}
	if !check.whole() {
		return errors.New("the copy of the store did not arrive whole: its hash does not match")
	}
	return nil
}

type countingWriter struct {
	to      io.Writer
	written int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.written += int64(n)
	return n, err
}

// snapshotCheck compares the last bytes of a snapshot with the hash of all bytes before them.
type snapshotCheck struct {
	hash hash.Hash
	tail []byte // the last bytes, which may be the hash
}

func newSnapshotCheck() *snapshotCheck { return &snapshotCheck{hash: sha256.New()} }

func (c *snapshotCheck) Write(p []byte) (int, error) {
	c.tail = append(c.tail, p...)
	if body := len(c.tail) - sha256.Size; body > 0 {
		c.hash.Write(c.tail[:body])
		c.tail = append(c.tail[:0], c.tail[body:]...)
	}
	return len(p), nil
}

func (c *snapshotCheck) whole() bool { return bytes.Equal(c.tail, c.hash.Sum(nil)) }
