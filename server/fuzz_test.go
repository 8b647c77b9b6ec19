package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server"
)

// Any request gets an answer of the contract that does not reveal the session's secret, and the server survives.
func FuzzBodies(f *testing.F) {
	const secret = "a secret that no request can say"
	s := start(f, func(c *server.Config) { c.Rate, c.NewRate, c.AddressRate, c.MaxWait = 0, 0, 0, time.Millisecond })
	f.Add("POST", "/api/locks", `{"paths":[["a","b"]],"mode":"shared","slots":2,"ttl_ms":100,"wait_ms":1}`, "")
	f.Add("POST", "/api/documents/r/lock", `{"holder_name":"Ann"}`, "")
	f.Add("PUT", "/api/documents/r/lock", "", "1")
	f.Add("PUT", "/api/documents/r/content", "text", "7")
	f.Add("DELETE", "/api/locks/x.eA", "", "")
	f.Add("GET", "/api/locks?path=a/b%2Fc", "", "")
	f.Add("GET", "/api/locks?path=a&limit=2&after=w1.x", "", "")
	f.Add("GET", "/api/documents/r/events?after=1", "", "")
	f.Fuzz(func(t *testing.T, method, path, body, token string) {
		request, err := http.NewRequest(method, "http://x/", strings.NewReader(body))
		if err != nil {
			return
		}
		request.URL.Path, request.URL.RawQuery, _ = strings.Cut(path, "?")
		request.Header.Set("Authorization", "Bearer "+secret)
		request.Header.Set(remote.HeaderToken, token)
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, request)
		assert.Less(t, answer.Code, 500, answer.Body.String())
		assert.NotContains(t, answer.Body.String(), secret)
		if answer.Code >= 400 && strings.HasPrefix(request.URL.Path, "/api/") {
			assert.True(t, isError(answer.Body.Bytes()), "%d %s", answer.Code, answer.Body)
		}
	})
}

// isError reports whether a body is an error of the contract.
func isError(text []byte) bool {
	var body struct {
		Success *bool  `json:"success"`
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	return json.Unmarshal(text, &body) == nil && body.Success != nil && !*body.Success && body.Error != "" && body.Message != ""
}
