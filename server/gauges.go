package server

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/rooms"
)

// registerRoomGauges registers gauges for rooms and their sockets.
func registerRoomGauges(registry *prometheus.Registry, r *rooms.Rooms) {
	for name, metric := range map[string]struct {
		help  string
		value func(rooms.Stats) float64
	}{
		"room_sockets":   {"Open WebSockets of rooms.", func(s rooms.Stats) float64 { return float64(s.Sockets) }},
		"rooms_followed": {"Rooms with a participant at this server.", func(s rooms.Stats) float64 { return float64(s.Rooms) }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "holdfast", Name: name, Help: metric.help},
			func() float64 { return metric.value(r.Stats()) }))
	}
}

// registerStoreGauges registers gauges for the size of the embedded store.
func registerStoreGauges(registry *prometheus.Registry, store *kv.Store) {
	for name, metric := range map[string]struct {
		help  string
		value func(kv.Space) int64
	}{
		"store_used_bytes":  {"Bytes of the embedded store that are in use.", func(r kv.Space) int64 { return r.Used }},
		"store_size_bytes":  {"Bytes of the embedded store's file.", func(r kv.Space) int64 { return r.Size }},
		"store_quota_bytes": {"Bytes that the embedded store may use.", func(r kv.Space) int64 { return r.Quota }},
		"disk_free_bytes":   {"Bytes that are free on the data directory's disk; -1 if unknown.", func(r kv.Space) int64 { return r.Free }},
		"store_full":        {"1 while contents are refused for want of space.", func(r kv.Space) int64 { return count(r.Full) }},
		"store_nearly_full": {"1 while the store is full or nearly so.", func(r kv.Space) int64 { return count(r.Warn) }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "holdfast", Name: name, Help: metric.help},
			func() float64 { return float64(metric.value(store.Space())) }))
	}
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// figures returns the metrics of a server: its own, and those of an embedded etcd.
func figures(own *prometheus.Registry, store *kv.Store) prometheus.Gatherer {
	if !store.Embedded() {
		return own
	}
	return prometheus.Gatherers{own, prometheus.GathererFunc(etcdFigures)}
}

// etcdFigures returns the metrics of the etcd in this process, which has no other registry than that of the process. That registry also has the
// metrics of libraries, and some that the server's own registry has. According to etcd, its etcd_debugging_ metrics may change at any time.
func etcdFigures() ([]*dto.MetricFamily, error) {
	all, err := prometheus.DefaultGatherer.Gather()
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool {
		return !strings.HasPrefix(f.GetName(), "etcd_") || strings.HasPrefix(f.GetName(), "etcd_debugging_")
	}), err
}
