package members

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The three members of deploy/compose.yaml find each other with their settings. Here they run on this machine, with a
// directory instead of the bucket.
func TestDeployedMembers(t *testing.T) {
	if os.Getenv("CHART") == "" {
		t.Skip("make check-deploy runs it")
	}
	text, err := os.ReadFile("../../deploy/compose.yaml")
	require.NoError(t, err)
	host := ownHost(t)
	network := host[:strings.LastIndex(host, ".")+1]
	settings, services, _ := strings.Cut(string(text), "\nservices:\n")
	keys := t.TempDir() + "/keys"
	require.NoError(t, os.WriteFile(keys, []byte("ann sha256:"+strings.Repeat("0", 64)+"\n"), 0o600))
	c := emptyCluster(t)
	for _, number := range []string{"1", "2", "3"} {
		own := regexp.MustCompile(`(?s)\n      HOLDFAST_PEER_URL: http://10\.0\.0\.` + number + `:.*?volumes:`).FindString(services)
		var flags []string
		for _, m := range regexp.MustCompile(`HOLDFAST_([A-Z_]+): "?([^"\s]+)`).FindAllStringSubmatch(settings+own, -1) {
			name := strings.ReplaceAll(strings.ToLower(m[1]), "_", "-")
			switch name {
			case "addr", "data-dir", "blobs", "client-url", "log": // those of the test
			case "api-keys":
				flags = append(flags, "--api-keys", keys)
			default:
				flags = append(flags, "--"+name+"="+strings.ReplaceAll(m[2], "10.0.0.", network))
			}
		}
		m := c.add(network+number, flags...)
		m.in()
		m.Start(m.addr)
	}
	c.serve()
}
