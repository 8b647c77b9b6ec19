package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/httpapi"
)

// options are the values of the flags of serve.
type options struct {
	addr            string
	metricsAddr     string
	anonymous       bool
	tlsCert, tlsKey string
	logLevel        slog.Level
	logFormat       string
	server          server.Config
}

func defaultOptions() options {
	return options{addr: "127.0.0.1:8080", logLevel: slog.LevelInfo, logFormat: "text", server: server.DefaultConfig()}
}

func (o *options) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.addr, "addr", o.addr, "`address` to listen on")
	flags.StringVar(&o.metricsAddr, "metrics-addr", o.metricsAddr, "`address` for the metrics, which --addr then does not serve; it has no TLS")
	flags.StringVar(&o.tlsCert, "tls-cert", o.tlsCert, "`file` of the certificate for TLS, with its chain; it is read again when it changes")
	flags.StringVar(&o.tlsKey, "tls-key", o.tlsKey, "`file` of the certificate's key")
	flags.BoolVar(&o.anonymous, "anonymous", o.anonymous, "serve addresses other than loopback ones although nobody can sign in")
	flags.Func("log", "`format` of the log: text or json (default text)", o.setLogFormat)
	flags.TextVar(&o.logLevel, "log-level", o.logLevel, "`level` of the log: debug, info, warn or error")
	o.server.Flags(flags)
}

func (o *options) setLogFormat(text string) error {
	if text != "text" && text != "json" {
		return errors.New("the formats are text and json")
	}
	o.logFormat = text
	return nil
}

func (o *options) newLog(to io.Writer) *slog.Logger {
	settings := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, settings))
	}
	return slog.New(slog.NewTextHandler(to, settings))
}

func prepareServe(flags *flag.FlagSet) func(context.Context, call) error {
	o := defaultOptions()
	flags.String(configFlag, "", "`file` with a line \"flag value\" for each flag; the environment and the command line override it")
	o.flags(flags)
	return func(ctx context.Context, use call) error { return serve(ctx, o, use.site, use.stdout, use.stderr) }
}

// buildSite says how a binary gets the site.
const buildSite = `in a clone of the project, run "make build", then build holdfast again`

// withoutSite answers instead of the site in a binary that was built without it, as go install does.
func withoutSite(w http.ResponseWriter, _ *http.Request) {
	static.SecurityHeaders(w.Header())
	http.Error(w, "This server has no site, only the API. For a site, "+buildSite+".", http.StatusNotFound)
}

// pagesOf returns the handler of the site.
func pagesOf(site fs.FS, log *slog.Logger) (http.Handler, error) {
	pages, err := static.Handler(site)
	if errors.Is(err, static.ErrNoIndex) {
		log.Warn("this binary has no site, only the API: " + buildSite)
		return http.HandlerFunc(withoutSite), nil
	}
	return pages, err
}

// serve runs the service with the site until ctx is done, and then stops gracefully. When it is ready, it prints one
// line with the address to open. It logs to stderr. Without a site it serves the API alone.
func serve(ctx context.Context, o options, site fs.FS, stdout, stderr io.Writer) error {
	hangups := catchHangups()
	defer signal.Stop(hangups)
	if err := o.checkAnonymous(); err != nil {
		return err
	}
	certificate, err := o.openCertificate()
	if err != nil {
		return err
	}
	listener, err := listen(o.addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	metrics, err := o.listenForMetrics()
	if err != nil {
		return err
	}
	defer metrics.close()
	o.server.Log = o.newLog(stderr)
	pages, err := pagesOf(site, o.server.Log)
	if err != nil {
		return err
	}
	service, err := server.Start(ctx, o.server, pages)
	if ctx.Err() != nil && service == nil {
		return nil // a signal has ended the start
	}
	if err != nil {
		return err
	}
	go saveMemory()
	httpServer := newHTTPServer(o.server, service.Handler())
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	served, scheme := o.listen(following, httpServer, listener, certificate)
	metrics.serve(newHTTPServer(o.server, service.Metrics()), o.server.Log)
	defer reloadAt(hangups, service.Reload)()
	fmt.Fprintf(stdout, "Holdfast is at %s (Ctrl+C stops it)\n", siteURL(scheme, listener.Addr()))

	select {
	case err = <-served:
	case err = <-service.Failed():
		err = fmt.Errorf("the store has failed: %w", err)
	case <-ctx.Done():
	}
	left := o.server.StopLimit - drain(ctx, o.server, service)
	return errors.Join(err, stop(context.WithoutCancel(ctx), httpServer, service, left, o.server.Log))
}

// listen begins to serve, over TLS if there is a certificate, whose files it follows until ctx ends. The channel delivers
// the error that ends it.
func (o *options) listen(ctx context.Context, s *http.Server, l net.Listener, c *certificate) (served chan error, scheme string) {
	proxies, _ := httpapi.ParseProxies(o.server.TrustedProxies) // the service has read them
	on := limitConnections(l, maxFiles(), proxies, o.server.Log)
	served = make(chan error, 1)
	if c == nil {
		go func() { served <- s.Serve(on) }()
		return served, "http"
	}
	go c.Follow(ctx, func(err error) { c.Report(err, o.server.Log) })
	s.TLSConfig = tlsConfig(c)
	go func() { served <- s.ServeTLS(on, "", "") }()
	return served, "https"
}

// newHTTPServer returns a server with the limits of the configuration.
func newHTTPServer(c server.Config, handler http.Handler) *http.Server {
	spare := &unused{}
	s := &http.Server{
		ConnState:         spare.note,
		Handler:           handler,
		ReadHeaderTimeout: c.HeaderLimit,
		ReadTimeout:       c.ReadLimit,
		WriteTimeout:      c.WriteLimit,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	s.RegisterOnShutdown(spare.close)
	return s
}

// checkAnonymous refuses to serve other machines if anybody there could read, lock and overwrite everything.
func (o *options) checkAnonymous() error {
	if o.anonymous || o.server.Users() {
		return nil
	}
	host, _, err := net.SplitHostPort(o.addr)
	if err != nil {
		return fmt.Errorf("--addr %s is not an address such as 127.0.0.1:8080: %w", o.addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("other machines reach %s, and nobody can sign in: anybody there could read and lock every document. "+
		"Name the users with --api-keys or --user-header, listen on 127.0.0.1, or allow it with --anonymous", o.addr)
}

// catchHangups returns a channel for SIGHUP. The start needs it too, because SIGHUP would end the process.
func catchHangups() chan os.Signal {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}

// reloadAt calls reload at each signal, until the returned function is called.
func reloadAt(hangups <-chan os.Signal, reload func()) (stop func()) {
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-hangups:
				reload()
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended) }
}

func listen(addr string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: stop it, or choose another port "+
			"(make run PORT=8081, or holdfast serve --addr 127.0.0.1:8081)", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return listener, nil
}

// siteURL returns the address for a browser on this machine. It uses localhost if possible: Web Locks and OPFS need a
// secure context, and an address other than a loopback address is not secure.
func siteURL(scheme string, addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return scheme + "://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
