package httpapi

import (
	"io"
	"net/http"
	"time"
)

var errRange = &apiError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "The content has no such range."}

// serveRange responds with bytes, or with the part that the request names.
func serveRange(w http.ResponseWriter, r *http.Request, modified time.Time, data io.ReadSeeker) error {
	plain := unconditional(r)
	if plain.Header.Get("Range") == "" {
		http.ServeContent(w, plain, "", modified, data)
		return nil
	}
	ranged := &rangeWriter{ResponseWriter: w}
	http.ServeContent(ranged, plain, "", modified, data)
	if !ranged.refused {
		return nil
	}
	size := w.Header().Get("Content-Range")
	clearHeader(w.Header())
	w.Header().Set("Content-Range", size)
	w.Header().Set("Cache-Control", "no-store") // which the standard library has removed
	return errRange
}

// rangeWriter discards the plain text with which the standard library refuses a range.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if w.refused = status == http.StatusRequestedRangeNotSatisfiable; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *rangeWriter) Write(data []byte) (int, error) {
	if w.refused {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}
