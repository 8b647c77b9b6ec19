package blobs_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/blobs/blobstest"
	"github.com/holdfast-dev/holdfast/server/metrics"
)

func TestCountedBlobsAreBlobs(t *testing.T) {
	dir := t.TempDir()
	blobstest.Run(t, func(t *testing.T) blobs.Blobs {
		f, err := blobs.OpenFiles(dir)
		require.NoError(t, err)
		return blobs.Counted(f, metrics.New(nil).Blobs)
	})
}

// full is a blob store without space.
type full struct{ blobs.Blobs }

func (full) Put(context.Context, string, []byte) error { return blobs.ErrFull }

func TestOperationsOfBlobsAreCounted(t *testing.T) {
	f, err := blobs.OpenFiles(t.TempDir())
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	m := metrics.New(registry).Blobs
	store := blobs.Counted(f, m)
	require.NoError(t, store.Put(t.Context(), "ab-1", []byte("12345")))
	r, err := store.Open(t.Context(), "ab-1")
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.NoError(t, errors.Join(err, r.Close()))
	_, err = store.Open(t.Context(), "ab-2")
	require.ErrorIs(t, err, blobs.ErrNotFound)
	require.NoError(t, store.Delete(t.Context(), "ab-1"))
	require.ErrorIs(t, blobs.Counted(full{f}, m).Put(t.Context(), "ab-3", []byte("x")), blobs.ErrFull)

	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, family := range families {
		if name, ok := strings.CutPrefix(family.GetName(), "holdfast_blob_"); ok {
			for _, one := range family.GetMetric() {
				got[name+label(one)] = one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
			}
		}
	}
	assert.Equal(t, map[string]float64{
		"reads_total": 2, "writes_total": 2, "deletes_total": 1, "errors_total": 1, "read_bytes_total": 5, "written_bytes_total": 5,
		"garbage_collected_total": 0, "seconds read": 2, "seconds write": 2, "seconds delete": 1,
	}, got)
}

func label(m *dto.Metric) (text string) {
	for _, l := range m.GetLabel() {
		text += " " + l.GetValue()
	}
	return text
}
