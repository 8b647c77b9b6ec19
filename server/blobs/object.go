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
	cursor

	body   io.ReadCloser // nil before the first request
	at     int64         // the offset of body
	stop   context.CancelFunc
	stalls *time.Timer // ends a body that delivers nothing for s3Limit
}

// request requests the bytes from offset on.
func (o *object) request() error {
	o.drop()
	options := minio.GetObjectOptions{}
	if o.offset > 0 {
		if err := options.SetRange(o.offset, 0); err != nil {
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
	if o.offset == 0 {
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
	if o.body == nil || o.at != o.offset {
		if err := o.request(); err != nil {
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

// Close ends the request.
func (o *object) Close() error {
	o.drop()
	return nil
}
