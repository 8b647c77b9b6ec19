// Package server puts the parts of the service together: the store (kv), the lock table (locks) with its sweeper, the
// contents, the events and the rooms. Over them are the HTTP interfaces.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-dev/holdfast/internal/follow"
	"github.com/holdfast-dev/holdfast/server/asks"
	"github.com/holdfast-dev/holdfast/server/audit"
	"github.com/holdfast-dev/holdfast/server/blobs"
	"github.com/holdfast-dev/holdfast/server/content"
	"github.com/holdfast-dev/holdfast/server/dav"
	"github.com/holdfast-dev/holdfast/server/events"
	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/kv"
	"github.com/holdfast-dev/holdfast/server/locks"
	"github.com/holdfast-dev/holdfast/server/metrics"
	"github.com/holdfast-dev/holdfast/server/policy"
	"github.com/holdfast-dev/holdfast/server/recorded"
	"github.com/holdfast-dev/holdfast/server/rooms"
	"github.com/holdfast-dev/holdfast/server/sessions"
	"github.com/holdfast-dev/holdfast/server/sweeper"
	"github.com/holdfast-dev/holdfast/server/traces"
	"github.com/holdfast-dev/holdfast/server/users"
	"github.com/holdfast-dev/holdfast/server/users/oidc"
	"github.com/holdfast-dev/holdfast/server/wopi"
)

// Server is a running service. It has no listener of its own: [Server.Handler] goes into one.
type Server struct {
	config   Config
	store    *kv.Store
	table    *locks.Table
	names    *names // nil with an external store
	hub      *events.Hub
	api      *httpapi.API
	dav      *dav.Handler
	wopi     *wopi.Handler
	rooms    *rooms.Rooms
	handler  http.Handler
	keys     *follow.Files[users.Keys] // nil for none
	rules    func() *policy.Policy     // nil without a file
	files    []followed
	audit    *audit.Log     // nil for none
	tokens   users.Tokens   // nil for none
	provider *oidc.Verifier // where users sign in; nil for none

	traces   *traces.Traces // nil for none
	metrics  http.Handler
	stopping atomic.Bool

	stop    context.CancelFunc
	running sync.WaitGroup
}

// Start opens the store and everything over it. site serves all other paths; nil answers 404.
func Start(ctx context.Context, c Config, site http.Handler) (*Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Server{config: c}
	var background context.Context
	background, s.stop = context.WithCancel(context.Background())
	if err := s.open(ctx, background, site); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open opens the parts in the order in which they need each other. Close ends what an error leaves open.
func (s *Server) open(ctx, background context.Context, site http.Handler) error {
	c := s.config
	if err := s.openStore(ctx); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counts := metrics.New(registry)
	if err := s.openTable(ctx, counts); err != nil {
		return err
	}
	contents, err := s.openContents(ctx, counts.Blobs)
	if err != nil {
		return err
	}
	if s.hub, err = events.Open(ctx, s.store, recorded.State(s.table, contents)); err != nil {
		return err
	}
	if err := s.openFiles(); err != nil {
		return err
	}
	trusted, err := httpapi.ParseProxies(c.TrustedProxies)
	if err != nil {
		return err
	}
	if err := s.openAPI(ctx, counts, contents, trusted); err != nil {
		return err
	}
	s.wopi = wopi.New(wopi.Config{API: s.api, Locks: s.table, Contents: contents, LockTTL: c.LockTTL})
	s.dav = dav.New(dav.Config{API: s.api, Locks: s.table, Contents: contents, Store: s.store, LockTTL: c.LockTTL, MaxContent: c.MaxContent})
	if s.rooms, err = rooms.New(roomsConfig(c, s.store, s.api)); err != nil {
		return err
	}
	registerRoomGauges(registry, s.rooms)
	registerStoreGauges(registry, s.store)
	s.runBackground(background, contents)
	s.handler = s.routes(registry, site)
	if c.AccessLog {
		s.handler = logged(c.Log, trusted.Address, s.handler)
	}
	s.handler = s.api.EnsureResponse(s.traces.Handler(s.handler, "/api/", dav.Prefix, wopi.Prefix))
	return nil
}

// openStore opens the store, and before it the traces.
func (s *Server) openStore(ctx context.Context) error {
	c := s.config
	config, err := storeConfig(c)
	if err != nil {
		return err
	}
	if c.Traces != "" {
		if s.traces, err = traces.Open(ctx, c.Traces, c.Log); err != nil {
			return err
		}
	}
	s.store, err = kv.Open(ctx, config)
	return err
}

// openTable opens the lock table. It notes the names that are no longer used, unless the store is external.
func (s *Server) openTable(ctx context.Context, counts *metrics.Metrics) (err error) {
	c := s.config
	ended := func(string, int64) {}
	if len(c.Etcd) == 0 {
		s.names = newNames(s.store, c.History)
		ended = s.names.note
	}
	s.table, err = locks.Open(ctx, s.store, locks.Config{
		Record: recorded.Lock, Ended: ended, Metrics: counts, Log: c.Log, InstanceTTL: c.InstanceTTL, SingleServer: s.store.SingleServer(),
		MaxHeld: c.MaxLocks, MaxWaiting: c.MaxWaiting, MaxTickets: c.MaxTickets, ReservedForLeases: s.store.ReservedForLeases,
	})
	return err
}

// openContents opens the contents of documents, with the store of their bytes.
func (s *Server) openContents(ctx context.Context, counts metrics.Blobs) (*content.Store, error) {
	c := s.config
	bytes, err := blobs.Open(ctx, cmp.Or(c.Blobs, filepath.Join(c.DataDir, "blobs")))
	if err != nil {
		return nil, err
	}
	contents := content.New(content.Config{
		KV: s.store, Locks: s.table, Blobs: blobs.Counted(bytes, counts), Apart: c.Blobs != "", Collected: counts.Collected.Inc, Keep: c.Keep, MaxDocuments: c.MaxDocuments, Record: recorded.Content, Forget: forgetDocument,
	})
	return contents, contents.Bind(ctx)
}

// forgetDocument removes the events and the properties of a document that is deleted.
func forgetDocument(document string) []kv.Op {
	return append(dav.Forget(document), events.Forget(document))
}

// openAPI opens the API, which knows the sessions and the users.
func (s *Server) openAPI(ctx context.Context, counts *metrics.Metrics, contents *content.Store, trusted httpapi.Proxies) (err error) {
	c := s.config
	who := sessions.Source{Users: s.users(trusted), SecureCookie: c.SecureCookie}
	if who.Key, err = sessionKey(ctx, s.store); err != nil {
		return err
	}
	s.api, err = httpapi.New(httpapi.Config{
		Locks: s.table, Asks: s.relay(recorded.Ask), Contents: contents, Events: s.hub, Metrics: counts, Log: c.Log, Sessions: who, Origins: c.Origins,
		LockTTL: c.LockTTL, MaxWait: c.MaxWait, Ping: c.Ping, WriteLimit: c.WriteLimit,
		Rate: c.Rate, Burst: c.Burst, NewRate: c.NewRate, NewBurst: c.NewBurst,
		AddressRate: c.AddressRate, AddressBurst: c.AddressBurst, UserRate: c.UserRate, UserBurst: c.UserBurst, Address: trusted.Address, LockAll: c.LockAll,
		Policy: s.policy(who.Users), SignIn: who.Users.Enabled(), Provider: s.provider, Audit: s.audit,
		MaxContent: c.MaxContent, MaxSockets: c.MaxSockets,
	})
	return err
}

// relay returns the relay of questions. The end of a question may be the last event of a name.
func (s *Server) relay(record func(string, asks.Ask, asks.Outcome) []kv.Op) *asks.Relay {
	relay := asks.New(s.store, s.table, record)
	if s.names != nil {
		relay.Ended = s.names.note
	}
	return relay
}

// runBackground starts what runs until background ends.
func (s *Server) runBackground(background context.Context, contents *content.Store) {
	s.running.Go(func() { sweeper.Run(background, s.table, s.config.Sweep, s.config.Log) })
	s.running.Go(func() { s.tidy(background, contents) })
	for _, f := range s.files {
		s.running.Go(func() { f.Follow(background, func(err error) { s.reloaded(f, err) }) })
	}
}

func storeConfig(c Config) (kv.Config, error) {
	config := kv.Config{History: c.History, Log: c.Log, Endpoints: c.Etcd, Quota: c.Quota}
	if len(c.Etcd) == 0 {
		config.DataDir = c.DataDir
		config.Member = kv.Member{
			Name: c.Name, PeerURL: c.PeerURL, ClientURL: c.ClientURL, PeerAddr: c.PeerAddr, ClientAddr: c.ClientAddr,
			Join: c.Join, Replace: c.Replace, TLS: c.PeerTLS,
		}
		return config, nil
	}
	config.TLS, config.User, config.Password = c.EtcdTLS, c.EtcdUser, os.Getenv(PasswordVariable)
	config.Prefix = c.Prefix
	if c.EtcdPassword != "" {
		text, err := os.ReadFile(c.EtcdPassword)
		if err != nil {
			return config, fmt.Errorf("the password for etcd cannot be read: %w", err)
		}
		config.Password = strings.TrimSpace(string(text))
	}
	return config, nil
}

func roomsConfig(c Config, store *kv.Store, api *httpapi.API) rooms.Config {
	identify := func(w http.ResponseWriter, r *http.Request) (rooms.Client, bool) {
		session, ok := api.Identify(w, r)
		return rooms.Client{
			Session: session.HolderID,
			May:     func(room string, change bool) bool { return api.MayEnter(r, session, room, change) },
			Allow:   func() bool { return api.MaySend(r, session) },
		}, ok
	}
	return rooms.Config{
		Store: store, Log: c.Log, Origins: c.Origins, Subprotocols: []string{users.SocketProtocol}, Identify: identify, Ping: c.Ping,
		Grace: c.RoomGrace, Idle: c.RoomIdle, IdleScan: c.RoomScan, Heartbeat: c.RoomHeartbeat, Dead: c.RoomDead,
	}
}

// Handler serves the service's paths and the site.
func (s *Server) Handler() http.Handler { return s.handler }

// Metrics serves /metrics, /healthz and /readyz, to anybody and by any name.
func (s *Server) Metrics() http.Handler { return s.metrics }

// BeginStop makes /readyz fail. Everything else keeps working.
func (s *Server) BeginStop() { s.stopping.Store(true) }

// Failed delivers the error that ended the store, if it ends by itself.
func (s *Server) Failed() <-chan error { return s.store.Failed() }

// Store returns the store of the service.
func (s *Server) Store() *kv.Store { return s.store }

// Drain ends the sockets: clients come back to another instance, or to this one after its restart.
func (s *Server) Drain(ctx context.Context) {
	var draining sync.WaitGroup
	draining.Go(func() { s.api.Drain(ctx) })
	draining.Go(func() { _ = s.rooms.Close(ctx) })
	draining.Wait()
}

// Close ends the service. Locks, contents and rooms stay in the store.
func (s *Server) Close() error {
	s.stop()
	s.running.Wait()
	if s.rooms != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.config.StopLimit)
		defer cancel()
		_ = s.rooms.Close(ctx)
	}
	if s.hub != nil {
		s.hub.Close()
	}
	if s.table != nil {
		s.table.Close()
	}
	s.traces.Close()
	err := s.audit.Close()
	if s.store != nil {
		err = errors.Join(s.store.Close(), err)
	}
	return err
}

// tidy deletes the bytes of contents that are no longer kept, and the events of names that are no longer used. After the start, it deletes
// the bytes that a crash left. It does so again when those of the last crash are old enough, and after a save whose outcome is unknown.
func (s *Server) tidy(ctx context.Context, contents *content.Store) {
	ticker := time.NewTicker(s.config.Sweep)
	defer ticker.Stop()
	begun := time.Now()
	for sweeps := []time.Duration{0, content.OrphanAge}; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if s.names != nil {
			if err := s.names.tidy(ctx, time.Now()); err != nil && ctx.Err() == nil {
				s.config.Log.Warn("unused names could not be removed; the server tries again", "error", err)
			}
		}
		err := contents.Tidy(ctx)
		if len(sweeps) == 0 && contents.NeedsSweep() {
			sweeps = []time.Duration{time.Since(begun) + content.OrphanAge}
		}
		if len(sweeps) > 0 && time.Since(begun) >= sweeps[0] {
			failed := contents.Sweep(ctx, time.Now())
			if failed == nil {
				sweeps = sweeps[1:]
			}
			err = cmp.Or(err, failed)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, content.ErrHeld) {
			s.config.Log.Warn("unused contents could not be deleted; the server tries again", "error", err)
		}
	}
}

func (s *Server) routes(registry *prometheus.Registry, site http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /ws", s.api.CountSockets(s.rooms))
	mux.Handle(wopi.Prefix, s.wopi)
	mux.HandleFunc("/ws", httpapi.OnlyGet)
	metrics := http.NewServeMux()
	metrics.Handle("GET /metrics", promhttp.HandlerFor(figures(registry, s.store), promhttp.HandlerOpts{}))
	for _, mux := range []*http.ServeMux{mux, metrics} {
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
		mux.HandleFunc("GET /readyz", s.ready)
	}
	s.metrics = metrics
	if !s.config.MetricsApart {
		mux.Handle("GET /metrics", s.api.LimitConcurrency(metrics))
	} else {
		mux.Handle("/metrics", http.NotFoundHandler())
	}
	if site != nil {
		mux.Handle("/", site)
	}
	return httpapi.CheckHost(s.config.Hosts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			s.api.ServeHTTP(w, r) // as it came: the router would redirect a document that is called ".."
			return
		}
		if strings.HasPrefix(r.URL.Path+"/", dav.Prefix) {
			r.Pattern = dav.Prefix // for its trace
			s.dav.ServeHTTP(w, r)  // as it came, too
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// ready answers whether the store answers; a load balancer asks.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if s.stopping.Load() {
		plain(w, http.StatusServiceUnavailable, "the server is stopping")
		return
	}
	if err := s.store.Ready(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "the store does not answer")
		return
	}
	if space := s.store.Space(); space.Warn {
		plain(w, http.StatusOK, "ready, but "+space.String())
		return
	}
	plain(w, http.StatusOK, "ready")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
