package browser

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
)

// A Server serves test pages on the loopback interface until the test ends. It has several origins, which share
// nothing with each other.
type Server struct {
	server *httptest.Server
	port   string
}

// addresses are the addresses of all servers so far. No address is reused, because browsers keep the storage of its
// origins.
var addresses sync.Map

func taken(l net.Listener) bool {
	_, before := addresses.LoadOrStore(l.Addr().String(), true)
	return before
}

// Serve starts a server with the handler.
func Serve(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	for taken(server.Listener) {
		_ = server.Listener.Close()
		server = httptest.NewUnstartedServer(handler)
	}
	// A browser repeats a request when its connection is cut. So the server ends the handlers first, including those
	// that answer nothing: each request's context ends with the test.
	ctx, end := context.WithCancel(context.Background())
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	t.Cleanup(func() {
		end()
		server.CloseClientConnections()
		server.Close()
	})
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatalf("browser: address of the server: %v", err)
	}
	return &Server{server: server, port: address.Port()}
}

// URL returns the address of a path ("/…") in the usual origin, which is a secure context.
func (s *Server) URL(path string) string { return s.at("localhost", path) }

// OtherURL returns the address of a path in a second secure origin.
func (s *Server) OtherURL(path string) string { return s.at("127.0.0.1", path) }

// InsecureURL returns the address of a path in an origin that is not a secure context.
func (s *Server) InsecureURL(path string) string { return s.at(InsecureHost, path) }

func (s *Server) at(host, path string) string { return "http://" + host + ":" + s.port + path }

// Pages is a handler with page bodies by path. A body is HTML, or JavaScript if its path ends in ".js".
type Pages map[string]Page

// A Page is one response of a [Pages] handler.
type Page struct {
	Body   string
	Header map[string]string // additional headers, such as Content-Security-Policy
}

// ServeHTTP answers with the page of the path, or 404. For the icon that every browser requests, it sends an empty
// response, so that no error appears on the console. Nothing is cached.
func (p Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := p[r.URL.Path]
	if !ok && r.URL.Path == "/favicon.ico" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", kind(r.URL.Path))
	for name, value := range page.Header {
		w.Header().Set(name, value)
	}
	_, _ = w.Write([]byte(page.Body))
}

// kind returns the media type of a path.
func kind(path string) string {
	if extension := filepath.Ext(path); extension == ".js" || extension == ".mjs" {
		return "text/javascript; charset=utf-8"
	}
	return "text/html; charset=utf-8"
}
