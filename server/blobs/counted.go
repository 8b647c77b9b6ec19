package blobs

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-dev/holdfast/server/metrics"
	"github.com/holdfast-dev/holdfast/server/traces"
)

// Counted counts the operations of b, and traces those of requests. A missing blob does not count as an error.
func Counted(b Blobs, m metrics.Blobs) Blobs { return counted{b, m} }

type counted struct {
	Blobs
	m metrics.Blobs
}

// done counts an operation that began at begun.
func (c counted) done(err error, begun time.Time, took prometheus.Observer, count prometheus.Counter) {
	took.Observe(time.Since(begun).Seconds())
	count.Inc()
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, context.Canceled) {
		c.m.Errors.Inc()
	}
}

func (c counted) Put(ctx context.Context, name string, data []byte) error {
	begun := time.Now()
	ctx, done := traces.Step(ctx, "blob write")
	err := c.Blobs.Put(ctx, name, data)
	done(err)
	c.done(err, begun, c.m.WriteTime, c.m.Writes)
	if err == nil {
		c.m.WrittenBytes.Add(float64(len(data)))
	}
	return err
}

func (c counted) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	begun := time.Now()
	inside, done := traces.Step(ctx, "blob open")
	r, err := c.Blobs.Open(inside, name)
	done(err)
	c.done(err, begun, c.m.ReadTime, c.m.Reads)
	if err != nil {
		return nil, err
	}
	return &countedReader{r, c.m}, nil
}

func (c counted) Delete(ctx context.Context, name string) error {
	begun := time.Now()
	ctx, done := traces.Step(ctx, "blob delete")
	err := c.Blobs.Delete(ctx, name)
	done(err)
	c.done(err, begun, c.m.DeleteTime, c.m.Deletes)
	return err
}

// countedReader counts the bytes read and the read errors.
type countedReader struct {
	io.ReadSeekCloser
	m metrics.Blobs
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeekCloser.Read(p)
	r.m.ReadBytes.Add(float64(n))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		r.m.Errors.Inc()
	}
	return n, err
}
