package blobs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

// object reads an object of a bucket. Seek sends nothing; the next read requests the bytes from the new offset on.
type object struct {
	ctx   context.Context
	store *S3
	key   string
	end   func() // nil if the object has a connection only during a read, see [places]
	cursor

	body   io.ReadCloser // nil before the first request
	at     int64         // the offset of body
	stop   context.CancelFunc
	stalls *time.Timer // ends a body that delivers nothing for s3Limit
}

// request requests the bytes from offset on: n of them, or all if n is 0.
func (o *object) request(n int) error {
	o.drop()
	options, last := minio.GetObjectOptions{}, int64(0)
	if n > 0 {
		last = o.offset + int64(n) - 1
	}
	if o.offset > 0 || n > 0 {
		if err := options.SetRange(o.offset, last); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(o.ctx)
	stalls := time.AfterFunc(s3Limit, stop)
	body, size, err := o.store.get(ctx, o.key, options)
	if err != nil {
		stalls.Stop()
		stop()
		if o.ctx.Err() != nil {
			return context.Cause(o.ctx)
		}
		return o.store.failed("read", err)
	}
	stalls.Stop()
	o.body, o.at, o.stop, o.stalls = body, o.offset, stop, stalls
	if o.offset == 0 && n == 0 {
		o.size = size
	}
	return nil
}

// drop ends the current body.
func (o *object) drop() {
	if o.body == nil {
		return
	}
	o.stalls.Stop()
	o.stop() // the rest need not arrive
	_ = o.body.Close()
	o.body = nil
}

// Read reads from the current offset.
func (o *object) Read(p []byte) (int, error) {
	if o.offset >= o.size {
		return 0, io.EOF
	}
	if o.end == nil {
		return o.readPiece(p)
	}
	if o.body == nil || o.at != o.offset {
		if err := o.request(0); err != nil {
			return 0, err
		}
	}
	o.stalls.Reset(s3Limit)
	n, err := o.body.Read(p)
	o.stalls.Stop() // a slow reader is not the store's fault
	o.offset += int64(n)
	o.at = o.offset
	switch {
	case err == nil || o.ctx.Err() != nil:
		return n, err
	case errors.Is(err, io.EOF) && o.offset == o.size:
		return n, io.EOF
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, o.store.failed("read", err)
}

// readPiece fills p, or reads the rest.
func (o *object) readPiece(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), o.size-o.offset)]
	if len(p) == 0 {
		return 0, nil
	}
	err = o.store.places.turn(o.ctx, func() error {
		if err := o.request(len(p)); err != nil {
			return err
		}
		defer o.drop()
		o.stalls.Reset(s3Limit)
		n, err = io.ReadFull(o.body, p)
		o.offset += int64(n)
		if err != nil && o.ctx.Err() == nil {
			err = o.store.failed("read", err)
		}
		return err
	})
	return n, err
}

// Close ends the request.
func (o *object) Close() error {
	o.drop()
	if o.end != nil {
		o.end()
	}
	return nil
}
