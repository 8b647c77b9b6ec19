package autosave_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/autosave"
)

// declarations is the declaration file of the browser package. It repeats the codes, names and defaults of this package.
const declarations = "../web/holdfast.d.ts"

// declared returns the source of a type or interface, comments included.
func declared(t *testing.T, head string) string {
	t.Helper()
	source, err := os.ReadFile(declarations)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(source), head)
	require.True(t, ok, "%s is not declared", head)
	text, _, _ := strings.Cut(rest, "\nexport ")
	return text
}

func TestCodesMatchDeclarations(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\s*\|\s*"([^"]+)";?\s*//\s*(save|read|edit), (retryable|final)\b`)
	var written, known []string
	for _, m := range line.FindAllStringSubmatch(declared(t, "export type AutoSaveErrorCode ="), -1) {
		written = append(written, strings.Join(m[1:], ", "))
	}
	for _, c := range autosave.Codes() {
		fate := map[bool]string{true: "retryable", false: "final"}[c.Retryable]
		known = append(known, strings.Join([]string{string(c.Code), string(c.Operation), fate}, ", "))
	}
	assert.Equal(t, known, written)
}

func TestWordsMatchDeclarations(t *testing.T) {
	words := func(source string) (found []string) {
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(source, -1) {
			found = append(found, m[1])
		}
		return found
	}
	phases, _, _ := strings.Cut(declared(t, "export type AutoSavePhase ="), ";")
	assert.Equal(t, []string{string(autosave.PhaseDisabled), string(autosave.PhaseIdle), string(autosave.PhaseDebouncing), string(autosave.PhaseAwaitingLock),
		string(autosave.PhaseWriting), string(autosave.PhaseIndex), string(autosave.PhaseGC), string(autosave.PhaseReadonly), string(autosave.PhaseError)}, words(phases))
	events, _, _ := strings.Cut(declared(t, "export interface AutoSaveEventMap {"), "\n}")
	for _, e := range []autosave.EventType{autosave.EventPhase, autosave.EventSaved, autosave.EventReadonly, autosave.EventEditable, autosave.EventPreview} {
		assert.Contains(t, words(events), string(e))
	}
}

// The comments of the declaration file state the defaults.
func TestDefaultsMatchDeclarations(t *testing.T) {
	options := declared(t, "export interface AutoSaveOptions {")
	for field, value := range map[string]string{
		"debounceMs": "500", "idleMs": "2000", "maxGenerations": "20", "maxBytes": "52428800", "enabled": "true", "standby": "true",
	} {
		assert.Regexp(t, `(?m)\b`+field+`\?:.*// default `+value+`\b`, options)
	}
	assert.EqualValues(t, 500, autosave.DefaultDebounce.Milliseconds())
	assert.EqualValues(t, 2000, autosave.DefaultIdle.Milliseconds())
	assert.EqualValues(t, 20, autosave.DefaultMaxGenerations)
	assert.EqualValues(t, 52428800, autosave.DefaultMaxBytes)
	assert.EqualValues(t, 5000, autosave.DefaultGrace.Milliseconds())
	assert.Contains(t, declared(t, "export interface AutoSave extends"), "(default\n   * 5000)")
}
