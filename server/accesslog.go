package server

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/server/httpapi"
	"github.com/holdfast-dev/holdfast/server/traces"
)

// logged logs each request at its end, with an id that the response has too, and with the id of its trace. It leaves the query out, because
// queries may hold secrets.
func logged(log *slog.Logger, address func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, counted := time.Now(), &countedWriter{ResponseWriter: w}
		id := rand.Text()[:16]
		w.Header().Set(httpapi.RequestHeader, id)
		defer func() { // also when the handler breaks the connection
			log := log
			if trace := traces.ID(r.Context()); trace != "" {
				log = log.With("trace", trace)
			}
			log.Info("request", "request", id, "method", httpapi.Clipped(r.Method), "path", httpapi.Clipped(r.URL.Path), "status", counted.status,
				"bytes", counted.bytes, "took", time.Since(begun).Round(time.Microsecond), "address", httpapi.Clipped(address(r)))
		}()
		next.ServeHTTP(counted, r)
	})
}

// countedWriter remembers what a handler responds. Status 0 means that it has not responded.
type countedWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets [http.ResponseController] and WebSockets reach the connection.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedWriter) WriteHeader(status int) {
	if w.status < http.StatusOK { // not after an informational status
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countedWriter) Write(data []byte) (int, error) {
	if w.status < http.StatusOK {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(data)
	w.bytes += int64(n)
	return n, err
}
