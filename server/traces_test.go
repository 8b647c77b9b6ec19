package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/servertest"
)

// spans is an OpenTelemetry collector that remembers what it gets.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu      sync.Mutex
	got     []*trace.Span
	service string
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				s.service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			s.got = append(s.got, scope.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// named returns the spans with a name.
func (s *spans) named(name string) (found []*trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.got {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

func collect(t *testing.T) (*spans, string) {
	t.Helper()
	s, receiver := &spans{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(receiver, s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = receiver.Serve(listener) }()
	t.Cleanup(receiver.Stop)
	return s, "http://" + listener.Addr().String()
}

// A request is a span that continues the trace of its sender, with spans inside for the store and the blobs. Paths that
// only operators ask, sockets and work of the server itself are none.
func TestTraces(t *testing.T) {
	t.Parallel()
	got, url := collect(t)
	c := servertest.Config(t)
	c.Traces = url
	s := startWith(t, c)
	sender := "0af7651916cd43dd8448eb211c80319c"
	ann := s.as(t, "ann").with("traceparent", "00-"+sender+"-b7ad6b7169203331-01")
	token := ann.lock("secret-name")
	require.Equal(t, http.StatusOK, ann.save("secret-name", token, "text").status)
	require.Equal(t, http.StatusOK, s.as(t, "bob").do("GET", contentOf("secret-name"), nil).status)
	assert.Equal(t, http.StatusNotFound, s.as(t, "bob").with("traceparent", "nonsense").do("GET", "/api/none", nil).status)
	assert.Equal(t, http.StatusOK, s.as(t, "").do("GET", "/readyz", nil).status)
	_ = s.events(t, "secret-name", "").conn.CloseNow()
	s.Stop(t)

	assert.Equal(t, "holdfast", got.service)
	saves := got.named("PUT /api/documents/{document}/content")
	require.Len(t, saves, 1)
	assert.Equal(t, sender, hex.EncodeToString(saves[0].TraceId))
	assert.Equal(t, trace.Span_SPAN_KIND_SERVER, saves[0].Kind)
	inside := map[string]bool{}
	for _, span := range got.got {
		if string(span.ParentSpanId) == string(saves[0].SpanId) {
			inside[span.Name] = true
		}
		assert.NotContains(t, span.Name, "secret-name")
		assert.NotContains(t, span.Name, "readyz")
		assert.NotContains(t, span.Name, "ws")
		assert.NotEmpty(t, span.TraceId)
		if strings.HasPrefix(span.Name, "etcd") || strings.HasPrefix(span.Name, "blob") {
			assert.NotEmpty(t, span.ParentSpanId, "work of the server itself has no spans")
		}
	}
	assert.Contains(t, inside, "etcd transaction")
	assert.Contains(t, inside, "blob write")
	reads := got.named("GET /api/documents/{document}/content")
	require.Len(t, reads, 1)
	assert.NotEqual(t, sender, hex.EncodeToString(reads[0].TraceId))
	assert.Len(t, got.named("HTTP"), 1, "a path that does not exist")
}

// The access log names the trace.
func TestTheAccessLogNamesTheTrace(t *testing.T) {
	t.Parallel()
	_, url := collect(t)
	var log bytes.Buffer
	s := start(t, func(c *server.Config) {
		c.Traces, c.AccessLog, c.Log = url, true, slog.New(slog.NewTextHandler(&log, nil))
	})
	sender := "0af7651916cd43dd8448eb211c80319c"
	s.as(t, "ann").with("traceparent", "00-"+sender+"-b7ad6b7169203331-01").do("GET", lockOf("r"), nil)
	s.Stop(t)
	assert.Contains(t, log.String(), "trace="+sender)
}

// A collector that does not answer delays neither requests nor the end.
func TestSilentCollectorDelaysNothing(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer silent.Close()
	c := servertest.Config(t)
	c.Traces = "http://" + silent.Addr().String()
	s := startWith(t, c)
	ann := s.as(t, "ann")
	for range 20 {
		require.Equal(t, http.StatusOK, ann.do("GET", lockOf("r"), nil).status)
	}
	begun := time.Now()
	s.Stop(t)
	assert.Less(t, time.Since(begun), 30*time.Second)

	for _, wrong := range []string{"127.0.0.1:4317", "ftp://host", "http://", "http://host/v1/traces", "http://ho st"} {
		c := servertest.Config(t)
		c.Traces = wrong
		_, err := server.Start(t.Context(), c, nil)
		require.ErrorContains(t, err, "--traces")
	}
}
