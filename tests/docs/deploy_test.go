package docs

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

const deploy = "../../deploy"

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	require.NoError(t, err)
	return string(text)
}

// The files for operators name flags and metrics of the server alone.
func TestFilesForOperators(t *testing.T) {
	t.Parallel()
	known := knownTo(t, "../..").flags
	flags := firsts(`\s--([a-z-]+)`, deployed(t, "holdfast.service")+deployed(t, "alerts.yaml"))
	flags = append(flags, firsts(`holdfast serve --([a-z-]+)`, deployed(t, "Dockerfile"))...)
	flags = append(flags, firsts(`- --([a-z-]+)`, deployed(t, "helm/templates/statefulset.yaml"))...)
	for _, variable := range firsts(`HOLDFAST_([A-Z_]+)[=:]`, deployed(t, "Dockerfile")+deployed(t, "compose.yaml")) {
		flags = append(flags, strings.ReplaceAll(strings.ToLower(variable), "_", "-"))
	}
	require.Greater(t, len(flags), 4)
	for _, flag := range flags {
		assert.Contains(t, known, flag)
	}

	response, err := http.Get(serve(t).URL + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	metrics := firsts(`(?m)^# HELP (holdfast_\w+) `, string(text))
	for _, name := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		used := unique(firsts(`(holdfast_\w+?)(?:_bucket)?\b`, deployed(t, name)))
		require.NotEmpty(t, used, name)
		for _, metric := range used {
			assert.Contains(t, metrics, metric, name)
		}
	}
	assert.True(t, json.Valid([]byte(deployed(t, "dashboard.json"))))
}

// A member with a million locks starts for some minutes. Kubernetes does not stop it meanwhile: it would start again and again.
func TestChartWaitsForALargeStore(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	number := func(pattern, text string) int {
		found := firsts(pattern, text)
		require.Len(t, found, 1)
		n, err := strconv.Atoi(found[0])
		require.NoError(t, err)
		return n
	}
	minutes := number(`a start with 1,000,000 locks \| (\d+) minutes`, string(text))
	probe := strings.Join(firsts(`(?s)startupProbe:(.*?)readinessProbe:`, deployed(t, "helm/templates/statefulset.yaml")), "")
	seconds := number(`periodSeconds: (\d+)`, probe) * number(`failureThreshold: (\d+)`, probe)
	assert.Greater(t, seconds, 2*60*minutes)
}

// A start ends within a second while the bucket of the contents, or their mounted directory, is not there yet, as after a loss of power. By
// default, systemd gives up for good after five starts in ten seconds.
func TestSystemdStartsTheServerAgainWithoutLimit(t *testing.T) {
	t.Parallel()
	unit, service, _ := strings.Cut(deployed(t, "holdfast.service"), "[Service]")
	assert.Contains(t, unit, "\nStartLimitIntervalSec=0\n")
	assert.Contains(t, service, "\nRestart=on-failure\n")
}

// The server reads the whole example of a configuration, and then misses the certificate.
func TestExampleOfAConfiguration(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(serving.Binary(t), "serve", "--config", filepath.Join(deploy, "holdfast.conf")).CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "/etc/holdfast/tls.pem: no such file")
	wrong := filepath.Join(t.TempDir(), "conf")
	require.NoError(t, os.WriteFile(wrong, []byte(deployed(t, "holdfast.conf")+"nonsense 1\n"), 0o600))
	out, err = exec.Command(serving.Binary(t), "serve", "--config", wrong).CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "there is no flag --nonsense")
}

// The server reads all that the chart gives it, and then misses the file of users or the provider: make check-deploy has
// helm write the chart with two sets of values.
func TestChart(t *testing.T) {
	file := os.Getenv("CHART")
	if file == "" {
		t.Skip("make check-deploy runs it")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lists := firsts(`(?s)args:\n(.*?)\n +env:`, string(text))
	require.Len(t, lists, 2)
	for _, list := range lists {
		var flags []string
		for _, flag := range firsts(`(?m)^ +- "?(.*?)"?$`, list) {
			flags = append(flags, strings.NewReplacer("$(HOLDFAST_NAME)", "holdfast-1", "=/data", "="+t.TempDir(), ":8080", ":0", ":9090", ":0").Replace(flag))
		}
		require.Greater(t, len(flags), 10)
		out, err := exec.CommandContext(t.Context(), serving.Binary(t), flags...).CombinedOutput()
		assert.Error(t, err)
		assert.Contains(t, string(out), "/etc/holdfast/peers/tls.crt", "the certificate between members is the first file that it reads")
	}
}
