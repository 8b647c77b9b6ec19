package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"
)

var errRange = &apiError{http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "The content has no such range."}

// maxRanges is the maximum number of ranges of a request. In a bucket, each range is a request of its own.
const maxRanges = 8

// serveRange responds with bytes, or with the parts that the request names. A request for too many parts, or in a unit other than bytes, gets
// everything (RFC 9110, section 14.2).
func serveRange(w http.ResponseWriter, r *http.Request, modified time.Time, data io.ReadSeeker) error {
	plain := unconditional(r)
	if text := plain.Header.Get("Range"); !strings.HasPrefix(text, "bytes=") || strings.Count(text, ",") >= maxRanges {
		plain.Header.Del("Range")
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
