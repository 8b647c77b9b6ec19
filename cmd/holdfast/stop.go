package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/server"
)

// errInterrupted is the cause of the end of the context after Ctrl+C.
var errInterrupted = errors.New("interrupted")

// untilSignal returns a context that ends at SIGINT and SIGTERM. A second signal ends the process at once, in case the
// graceful stop takes too long.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			if s == os.Interrupt {
				cancel(errInterrupted)
			}
		case <-ctx.Done():
		}
		cancel(nil)
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// drain makes /readyz fail and gives load balancers time to notice, while the listener still takes connections. At a
// terminal, and when the server has failed, nobody waits for that. It returns the time that it has taken.
func drain(ctx context.Context, c server.Config, service *server.Server) time.Duration {
	service.BeginStop()
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errInterrupted) {
		return 0
	}
	long := min(c.Drain, c.StopLimit/2)
	_ = wait.For(context.WithoutCancel(ctx), long)
	return long
}

// storeShare is the part of a graceful stop that at least remains for closing the store.
const storeShare = 5

// stop closes the sockets, lets running requests end, cuts off those that do not end, and closes the store. A store that does not close, because
// the other members that it waits for stop too, ends with the process, as in a crash.
func stop(ctx context.Context, httpServer *http.Server, service *server.Server, limit time.Duration, log *slog.Logger) error {
	end := time.After(limit)
	ctx, cancel := context.WithTimeout(ctx, limit-limit/storeShare)
	defer cancel()
	go service.Drain(ctx)
	if httpServer.Shutdown(ctx) != nil {
		_ = httpServer.Close() // for instance a request that waits for a lock; its client asks again
	}
	service.Drain(ctx)
	closed := make(chan error, 1)
	go func() { closed <- service.Close() }()
	select {
	case err := <-closed:
		return err
	case <-end:
		log.Warn("the store did not close in time; acknowledged changes are kept")
		return nil
	}
}

// apart is the listener of the metrics; nil is none.
type apart struct{ net.Listener }

// listenForMetrics opens the address of the metrics, if they have one of their own.
func (o *options) listenForMetrics() (*apart, error) {
	if o.metricsAddr == "" {
		return nil, nil
	}
	o.server.MetricsApart = true
	listener, err := listen(o.metricsAddr)
	return &apart{listener}, err
}

func (a *apart) serve(s *http.Server, log *slog.Logger) {
	if a != nil {
		go func() { _ = s.Serve(limitMetrics(a.Listener, log)) }() // until close
	}
}

func (a *apart) close() {
	if a != nil {
		_ = a.Close()
	}
}
