package httpapi

import (
	"net/http"
	"slices"

	"github.com/holdfast-dev/holdfast/server/sessions"
)

// cors lets pages of the listed origins, and of no other, read the responses of the API, as browsers require (the Fetch
// standard, section 3.2). Such a page sends the cookie of its browser, if the site is the same, or a bearer secret.
func (a *API) cors(next http.Handler) http.Handler {
	if len(a.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(a.Origins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
		header.Set("Access-Control-Allow-Credentials", "true")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			header.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
			header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match, If-Range, If-Unmodified-Since, "+sessions.SessionHeader+", "+tokenHeader+", "+saveHeader+", "+orderHeader)
			header.Set("Access-Control-Max-Age", "7200") // the maximum in Chromium
			w.WriteHeader(http.StatusNoContent)
			return
		}
		header.Set("Access-Control-Expose-Headers", "Content-Range, ETag, Retry-After, "+
			revisionHeader+", "+savedAtHeader+", "+tokenHeader+", "+saveHeader+", "+generationHeader)
		next.ServeHTTP(w, r)
	})
}
