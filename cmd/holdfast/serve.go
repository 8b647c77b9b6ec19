package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/static"
)

// stopLimit is how long a graceful stop waits for requests that are under way.
const stopLimit = 5 * time.Second

// serve serves site on addr until ctx is done, then lets the requests under way end. It prints one
// line, with the address to open, once it listens.
func serve(ctx context.Context, addr string, site fs.FS, stdout io.Writer) error {
	handler, err := static.Handler(site)
	if errors.Is(err, static.ErrNoIndex) {
		return errors.New(`the site has not been built: run "make build", then build holdfast again`)
	}
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program: stop it, or choose another port "+
			"(make run PORT=8081, or holdfast serve --addr 127.0.0.1:8081)", addr)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	fmt.Fprintf(stdout, "Holdfast is at %s (Ctrl+C stops it)\n", siteURL(listener.Addr()))

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// siteURL returns what to type into a browser on this machine. It says localhost where it can: Web
// Locks and OPFS want a secure context, and a bare address other than a loopback one is none.
func siteURL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
