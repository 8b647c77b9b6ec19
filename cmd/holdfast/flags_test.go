package main

import (
	"flag"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse reads flags like serve's.
func parse(t *testing.T, args []string, env map[string]string, config string) (o options, rest []string, err error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	if config != "" {
		path := fileIn(t, "config")
		require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
		args = append(args, "--config", path)
	}
	o = defaultOptions()
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.String(configFlag, "", "")
	o.flags(flags)
	rest, err = readFlags(flags, args)
	return o, rest, err
}

// The command line goes before the environment, and that before the file.
func TestFlagsFromTheEnvironmentAndAFile(t *testing.T) {
	config := "# a comment\n\naddr = 127.0.0.1:1\nlock-ttl 11s\n--keep=3\nsecure-cookie\norigin https://a.example,https://b.example\nname = a = b\n"
	o, rest, err := parse(t, []string{"one", "--lock-ttl", "13s", "two", "--", "--three"}, map[string]string{
		"HOLDFAST_LOCK_TTL": "12s", "HOLDFAST_KEEP": "4", "HOLDFAST_DATA_DIR": "dir", "HOLDFAST_SWEEP": "",
	}, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "--three"}, rest)
	assert.Equal(t, 13*time.Second, o.server.LockTTL)
	assert.Equal(t, 4, o.server.Keep)
	assert.Equal(t, "dir", o.server.DataDir)
	assert.Equal(t, time.Minute, o.server.Sweep, "an empty variable is none")

	o, _, err = parse(t, nil, map[string]string{"HOLDFAST_KEEP": "4"}, config)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:1", o.addr)
	assert.Equal(t, 12*time.Second, o.server.LockTTL, "from the environment above")
	assert.Equal(t, 4, o.server.Keep)
	assert.True(t, o.server.SecureCookie)
	assert.Equal(t, []string{"https://a.example", "https://b.example"}, o.server.Origins)
	assert.Equal(t, "a = b", o.server.Name)
}

// A list may be one flag with commas, several flags, or both.
func TestListFlagMayBeRepeated(t *testing.T) {
	o, _, err := parse(t, []string{"--host", "a.example", "--origin", "https://a.example", "--host=b.example, c.example"},
		map[string]string{"HOLDFAST_HOST": "other.example"}, "host another.example")
	require.NoError(t, err)
	assert.Equal(t, []string{"a.example", "b.example", "c.example"}, o.server.Hosts)
	assert.Equal(t, []string{"https://a.example"}, o.server.Origins)
}

func TestMistakesInTheEnvironmentAndTheFile(t *testing.T) {
	for config, says := range map[string]string{
		"addr :1\nnonsense = 1": ":2: there is no flag --nonsense", "keep = many": ":1: --keep:", "keep 1\nkeep 2": ":2: --keep is there twice",
		"config = other": "there is no flag --config", "keep": ":1: --keep:",
	} {
		_, _, err := parse(t, nil, nil, config)
		assert.ErrorContains(t, err, says, config)
	}
	_, _, err := parse(t, []string{"--config", "/no/such/file"}, nil, "")
	assert.ErrorContains(t, err, "/no/such/file")
	_, _, err = parse(t, nil, map[string]string{"HOLDFAST_LOCK_TTL": "soon"}, "")
	assert.ErrorContains(t, err, "HOLDFAST_LOCK_TTL")
}
