package docs

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page for operators has every flag and every metric of the server, and no other.
func TestOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)

	flags := knownTo(t, "../..").flags
	require.NotEmpty(t, flags)
	_, table, _ := strings.Cut(string(text), "## Flags")
	table, _, _ = strings.Cut(table, "## Metrics")
	assert.ElementsMatch(t, flags, unique(firsts("`--([a-z-]+)`", table)))

	response, err := http.Get(serve(t) + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.ElementsMatch(t, unique(firsts(`(?m)^# HELP (holdfast_\w+) `, string(metrics))), unique(firsts("`(holdfast_\\w+)`", string(text))))
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
