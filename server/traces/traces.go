// Package traces sends OpenTelemetry traces to a collector: a span for each request, with a span inside for each read or
// transaction of the store and each use of the bytes of contents.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/holdfast-dev/holdfast/server"

// maxValue is the maximum length of an attribute of a span, unless the environment sets another one. Spans wait in memory
// while the collector is away.
const maxValue = 1024

// lastLimit bounds how long [Traces.Close] takes to send the last spans.
const lastLimit = time.Second

// Traces sends spans to a collector in the background. A collector that does not answer delays no request: its spans are
// dropped. The nil value sends nothing.
type Traces struct {
	provider *sdk.TracerProvider
	log      *slog.Logger
}

// Open returns traces for the collector at an address such as http://127.0.0.1:4317, over OTLP and gRPC. It does not wait
// for the collector. The environment variables of the OpenTelemetry specification set the rest: the name of the service,
// the sampler, headers and certificates.
func Open(ctx context.Context, collector string, log *slog.Logger) (*Traces, error) {
	u, err := url.Parse(collector)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("--traces is the URL of an OpenTelemetry collector, such as http://127.0.0.1:4317, not %q", collector)
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(collector))
	if err != nil {
		return nil, fmt.Errorf("the traces cannot be sent to %s: %w", collector, err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "holdfast")), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES cannot be used: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not sent", "collector", collector, "error", err) }))
	limits := sdk.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 { // the environment says nothing
		limits.AttributeValueLengthLimit = maxValue
	}
	return &Traces{sdk.NewTracerProvider(sdk.WithRawSpanLimits(limits), sdk.WithSpanProcessor(text{}), sdk.WithBatcher(exporter), sdk.WithResource(about)), log}, nil
}

// text replaces bytes that are no text in what a request has set: the exporter refuses a batch with one such span.
type text struct{}

// OnStart corrects the attributes.
func (text) OnStart(_ context.Context, span sdk.ReadWriteSpan) {
	for _, a := range span.Attributes() {
		if a.Value.Type() == attribute.STRING {
			span.SetAttributes(a.Key.String(valid(a.Value.AsString())))
		}
	}
}

// OnEnd does nothing.
func (text) OnEnd(sdk.ReadOnlySpan) {}

// Shutdown does nothing.
func (text) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (text) ForceFlush(context.Context) error { return nil }

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Close sends the remaining spans, for up to a second. It logs a failure.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastLimit)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "error", err)
	}
}

// Handler begins a span for each request whose path has one of the prefixes. WebSockets have none, because they stay open
// for hours. A request with the header traceparent continues the trace of its sender.
func (t *Traces) Handler(next http.Handler, prefixes ...string) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "HTTP",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagation.TraceContext{}), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithSpanNameFormatter(func(unknown string, r *http.Request) string {
			if r.Pattern == "" {
				return unknown
			}
			return r.Pattern
		}),
		otelhttp.WithFilter(func(r *http.Request) bool {
			return r.Header.Get("Upgrade") == "" && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) })
		}))
}

// ID returns the id of the trace that ctx belongs to, or "".
func ID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// Step begins a span inside the span of a request. done ends it. Outside of requests there are no spans.
func Step(ctx context.Context, name string) (inside context.Context, done func(error)) {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := request.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, valid(err.Error()))
		}
		span.End()
	}
}
