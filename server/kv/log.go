package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapOver returns a logger for etcd that writes to log. It maps etcd's level info to debug. It writes nothing once
// quiet is true; it may be nil.
func zapOver(log *slog.Logger, quiet *atomic.Bool) *zap.Logger {
	return zap.New(slogCore{log.With("part", "etcd"), quiet}, zap.WithFatalHook(fatal{}), zap.WithPanicHook(panics{}))
}

// fatal handles an error for which etcd would end the process. In a call that starts a store, it panics and the call returns an
// error. Elsewhere it ends the process with one sentence. Acknowledged writes are on disk.
type fatal struct{}

// isRecovered reports whether this goroutine runs in a call that starts a store, and that recovers from a panic. etcd opens the database in a
// goroutine of its own, in which a panic would end the process with a stack trace.
func isRecovered() bool {
	var stack [100]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "/kv.(*embedded).start") || strings.HasSuffix(frame.Function, "/kv.(*Restoration).Store") {
			return true
		}
		if !more {
			return false
		}
	}
}

func (fatal) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := errors.New(e.Message)
	for _, err := range errorsIn(fields) {
		reason = fmt.Errorf("%w: %w", reason, err)
	}
	if isRecovered() {
		panic(reason)
	}
	fmt.Fprintf(os.Stderr, "holdfast: the store cannot continue: %v; acknowledged changes are kept; fix the cause and start again\n", reason)
	os.Exit(1)
}

// panics handles a panic of etcd. While a store starts, the call that starts it returns an error. If the system has refused
// something, such as space, the process ends with one sentence. Any other panic is a defect and keeps its stack trace.
type panics struct{}

func (panics) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	if isRecovered() || isRefusal(errors.Join(errorsIn(fields)...)) {
		fatal{}.OnWrite(e, fields)
	}
	panic(e.Message)
}

// isRefusal reports whether the system has refused something, such as more space or the right to read a file.
func isRefusal(err error) bool {
	number := syscall.Errno(0)
	return errors.As(err, &number)
}

func errorsIn(fields []zapcore.Field) (list []error) {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			list = append(list, err)
		}
	}
	return list
}

type slogCore struct {
	log   *slog.Logger
	quiet *atomic.Bool
}

// routine are the warnings that etcd logs at every start of a new store or of a cluster of one.
var routine = map[string]bool{
	"Running http and grpc server on single port. This is not recommended for production.": true,
	"simple token is not cryptographically signed":                                         true,
	"Failed to detect schema version":                                                      true,
	"failed to update storage version":                                                     true,
}

func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (c slogCore) Enabled(l zapcore.Level) bool {
	if c.quiet != nil && c.quiet.Load() {
		return false
	}
	return c.log.Enabled(context.Background(), level(l))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{slog.New(c.log.Handler().WithAttrs(attributes(fields))), c.quiet}
}

func (c slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	at := level(e.Level)
	if routine[e.Message] {
		at = slog.LevelDebug
	}
	c.log.LogAttrs(context.Background(), at, e.Message, attributes(fields)...)
	return nil
}

func (slogCore) Sync() error { return nil }

// attributes omits the requests that etcd logs as slow or failing, because their keys contain socket tokens.
func attributes(fields []zapcore.Field) []slog.Attr {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		if f.Key != "request" {
			f.AddTo(values)
		}
	}
	var list []slog.Attr
	for key, value := range values.Fields {
		list = append(list, slog.Any(key, value))
	}
	return list
}
