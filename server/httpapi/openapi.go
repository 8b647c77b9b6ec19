package httpapi

import (
	_ "embed"
	"net/http"
)

// Description is the OpenAPI description of all calls. Tests compare it with the calls and their answers.
//
//go:embed openapi.json
var Description []byte

const describePattern = "GET /api/openapi.json"

// serveDescription serves the description to everybody: it is the same for all servers, and makes no session.
func serveDescription(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(Description)
}
