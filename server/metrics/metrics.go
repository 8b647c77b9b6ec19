// Package metrics contains the server's metrics for Prometheus. Every name begins with holdfast_.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters and gauges of one server.
type Metrics struct {
	Grants, Conflicts, Renewals, Expiries, Releases prometheus.Counter
	Deadlocks                                       prometheus.Counter
	FenceRejections                                 prometheus.Counter
	RateLimited                                     prometheus.Counter
	Locks, Waiters, Sockets                         prometheus.Gauge
	// WatchLag is the time from a lock's grant until this server's watch reported it, in seconds.
	WatchLag prometheus.Histogram
	// SweepDelay is the time from a lock's expiry until it was swept, in seconds.
	SweepDelay prometheus.Histogram
	Blobs      Blobs
}

// Blobs are the counters of the blob store.
type Blobs struct {
	Reads, Writes, Deletes, Errors     prometheus.Counter
	ReadBytes, WrittenBytes, Collected prometheus.Counter
	ReadTime, WriteTime, DeleteTime    prometheus.Observer
}

// buckets are those of all durations, in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// New registers the metrics. With a nil registry, as in tests, nobody can read them.
func New(registry *prometheus.Registry) *Metrics {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "holdfast", Name: name, Help: help})
		registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "holdfast", Name: name, Help: help})
		registry.MustRegister(g)
		return g
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "holdfast", Name: name, Help: help,
			Buckets: buckets})
		registry.MustRegister(h)
		return h
	}
	return &Metrics{
		Blobs:           newBlobs(registry, counter),
		Grants:          counter("grants_total", "Locks granted."),
		Conflicts:       counter("conflicts_total", "Requests refused because another owner holds the lock."),
		Renewals:        counter("renewals_total", "Heartbeats that extended a lock."),
		Expiries:        counter("expiries_total", "Locks that this server ended because their heartbeat stopped."),
		Releases:        counter("releases_total", "Locks released."),
		Deadlocks:       counter("deadlocks_total", "Requests that ended with deadlock."),
		FenceRejections: counter("fence_rejections_total", "Writes refused because of their token."),
		RateLimited:     counter("rate_limited_total", "Requests refused with rate_limited."),
		Locks:           gauge("locks", "Locks that are held, in the whole store."),
		Waiters:         gauge("waiters", "Requests that wait for a lock at this server."),
		Sockets:         gauge("sockets", "Open WebSockets."),
		WatchLag:        histogram("watch_lag_seconds", "Time from a grant until this server's watch reported it."),
		SweepDelay:      histogram("sweep_delay_seconds", "Time from a lock's expiry until a server removed the lock."),
	}
}

// newBlobs registers the metrics of the blob store. counter registers one counter.
func newBlobs(registry *prometheus.Registry, counter func(name, help string) prometheus.Counter) Blobs {
	blobTime := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "holdfast", Name: "blob_seconds",
		Help: "Duration of an operation of the blob store; of a read, until its first bytes.", Buckets: buckets}, []string{"operation"})
	registry.MustRegister(blobTime)
	return Blobs{
		Reads:        counter("blob_reads_total", "Contents read from the blob store."),
		Writes:       counter("blob_writes_total", "Contents written to the blob store."),
		Deletes:      counter("blob_deletes_total", "Contents deleted from the blob store."),
		Errors:       counter("blob_errors_total", "Operations of the blob store that failed."),
		ReadBytes:    counter("blob_read_bytes_total", "Bytes read from the blob store."),
		WrittenBytes: counter("blob_written_bytes_total", "Bytes written to the blob store."),
		Collected:    counter("blob_garbage_collected_total", "Contents deleted because no document refers to them."),
		ReadTime:     blobTime.WithLabelValues("read"),
		WriteTime:    blobTime.WithLabelValues("write"),
		DeleteTime:   blobTime.WithLabelValues("delete"),
	}
}
