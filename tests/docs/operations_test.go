package docs

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page for operators lists exactly the flags and metrics of the server.
func TestOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)

	flags := knownTo(t, "../..").flags
	require.NotEmpty(t, flags)
	_, table, _ := strings.Cut(string(text), "## Flags")
	table, _, _ = strings.Cut(table, "## Metrics")
	assert.ElementsMatch(t, flags, unique(firsts("`--([a-z-]+)`", table)))

	response, err := http.Get(serve(t).URL + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.ElementsMatch(t, unique(firsts(`(?m)^# HELP (holdfast_\w+) `, string(metrics))), unique(firsts("`(holdfast_\\w+)`", string(text))))
}

// The table of errors lists every code of the API with its status.
func TestErrorsOfTheServer(t *testing.T) {
	text, err := os.ReadFile("../../docs/http.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "## Errors")
	var sources strings.Builder
	files, err := filepath.Glob("../../server/httpapi/*.go")
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		sources.Write(source)
	}
	codes := firsts(`(?:http\.Status\w+, |refusal\(|failure\{false, )"([a-z_]+)"`, sources.String())
	require.NotEmpty(t, codes)
	documented := firsts("`([a-z_]+)`(?:, `[a-z_]+`)? \\| \\d{3} ", table)
	documented = append(documented, firsts("`, `([a-z_]+)` \\| \\d{3} ", table)...)
	assert.ElementsMatch(t, unique(codes), unique(documented))
}

// The table of codes lists every error that a socket of a room gets.
func TestErrorsOfRooms(t *testing.T) {
	text, err := os.ReadFile("../../docs/rooms.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "| Code | Meaning |")
	source, err := os.ReadFile("../../server/rooms/refusal.go")
	require.NoError(t, err)
	codes := firsts(`&refusal\{"([a-z_]+)"`, string(source))
	require.NotEmpty(t, codes)
	assert.ElementsMatch(t, unique(codes), unique(firsts("(?m)^\\| `([a-z_]+)` \\|", table)))
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
