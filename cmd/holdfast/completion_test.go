package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func completion(t *testing.T, shell string) string {
	t.Helper()
	var script strings.Builder
	require.NoError(t, run(t.Context(), []string{"completion", shell}, site, &script, io.Discard))
	assert.NotContains(t, script.String(), "%!")
	path := fileIn(t, shell)
	require.NoError(t, os.WriteFile(path, []byte(script.String()), 0o600))
	return path
}

// completed are words after which a user presses the tab key, and a word that must be offered.
var completed = map[string]string{
	"l": "lock", "lock --wa": "--wait", "serve --pol": "--policy", "completion b": "bash", "lock plan -- tou": "touch", "locks --js": "--json",
}

func TestBashCompletion(t *testing.T) {
	script := completion(t, "bash")
	for line, want := range completed {
		test := `source "$0"; COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#; _holdfast; printf '%s\n' "${COMPREPLY[@]}"`
		out, err := exec.Command("bash", append([]string{"-c", test, script}, strings.Fields(line)...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, strings.Fields(string(out)), want, line)
	}
}

func TestZshCompletion(t *testing.T) {
	script := completion(t, "zsh")
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Skip("there is no zsh on this machine")
	}
	// A stand-in for compadd prints what it is offered.
	test := `compdef() { : }; _files() { : }; _normal() { print touch }; compadd() { shift; print -l -- $@ }; source $0; words=(holdfast "$@"); CURRENT=$#words; _holdfast`
	for line, want := range completed {
		out, err := exec.Command("zsh", append([]string{"-f", "-c", test, script}, strings.Fields(line)...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, strings.Fields(string(out)), want, line)
	}
}
