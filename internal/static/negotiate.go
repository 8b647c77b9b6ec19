package static

import (
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// kind describes how files with one extension are sent.
type kind struct {
	contentType  string
	compressible bool
}

// kinds is a separate table, because the table of package mime depends on the machine.
var kinds = map[string]kind{
	".css":  {"text/css; charset=utf-8", true},
	".html": {"text/html; charset=utf-8", true},
	".ico":  {"image/x-icon", false},
	".js":   {"text/javascript; charset=utf-8", true},
	".json": {"application/json", true},
	".map":  {"application/json", true},
	".png":  {"image/png", false},
	".svg":  {"image/svg+xml", true},
	".ts":   {"text/plain; charset=utf-8", true}, // declarations for people
	".txt":  {"text/plain; charset=utf-8", true},
	".wasm": {"application/wasm", true}, // streaming compilation requires exactly this type
}

func kindOf(name string) kind {
	if k, ok := kinds[path.Ext(name)]; ok {
		return k
	}
	return kind{contentType: "application/octet-stream"}
}

// acceptsGzip evaluates the Accept-Encoding fields of a request (RFC 9110, section 12.5.3). An explicit weight for
// gzip overrides one for "*".
func acceptsGzip(fields []string) bool {
	accepted := false
	for _, item := range strings.Split(strings.Join(fields, ","), ",") {
		coding, params, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return weight(params) > 0
		case "*":
			accepted = weight(params) > 0
		}
	}
	return accepted
}

// weight returns the q of a field's parameters: 1 if there is none, 0 if it is unreadable.
func weight(params string) float64 {
	name, value, found := strings.Cut(params, "=")
	if !found || strings.ToLower(strings.TrimSpace(name)) != "q" {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return 0
	}
	return q
}

// local reports whether the request comes from the same machine without a proxy. Compression saves no network time
// then, and unpacking the Wasm would take a browser 40 ms at every start.
func local(r *http.Request) bool {
	for _, field := range []string{"Forwarded", "Via", "X-Forwarded-For"} {
		if r.Header.Get(field) != "" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err == nil && net.ParseIP(host).IsLoopback()
}
