package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/servertest"
)

// One request with bytes that are no text would make the collector's client refuse a whole batch, with the spans of
// others. Long headers of many requests would fill the memory while the collector is away.
func TestTracesOfHostileRequests(t *testing.T) {
	t.Parallel()
	got, url := collect(t)
	c := servertest.Config(t)
	c.Traces = url
	s := startWith(t, c)
	long := strings.Repeat("x", 30_000)
	for header, value := range map[string]string{"User-Agent": "\xff\xfe" + long, "X-Forwarded-For": "\xff" + long, "Content-Type": "\xff"} {
		s.as(t, "eve").with(header, value).do("GET", "/api/documents/%FF%FE/lock", nil)
	}
	s.as(t, "eve").do("GET", "/api/documents/"+long+"/lock", nil)
	require.Equal(t, http.StatusOK, s.as(t, "ann").do("GET", lockOf("r"), nil).status)
	s.Stop(t)

	assert.Len(t, got.named("GET /api/documents/{document}/lock"), 5, "all spans arrive")
	for _, span := range got.got {
		for _, a := range span.Attributes {
			assert.Less(t, len(a.Value.GetStringValue()), 2000, a.Key)
		}
	}
}
