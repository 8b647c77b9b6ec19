package httpapi

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every call is described, and nothing else is.
func TestDescriptionHasEveryCall(t *testing.T) {
	a, err := New(Config{})
	require.NoError(t, err)
	parameter := regexp.MustCompile(`\{\w+\}`)
	var there []string
	for _, pattern := range a.calls {
		there = append(there, parameter.ReplaceAllString(pattern, "{}"))
	}
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(Description, &description))
	var described []string
	for path, methods := range description.Paths {
		for method := range methods {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+parameter.ReplaceAllString(path, "{}"))
			}
		}
	}
	slices.Sort(there)
	slices.Sort(described)
	assert.Equal(t, there, described)
}
