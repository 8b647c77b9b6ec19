package members

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/tests/serving"
)

// The file system of the image's last stage, without an engine for containers: the program that the Dockerfile builds runs as the
// user of the base image, with the settings of the Dockerfile, on a root that is read-only and without capabilities, as
// deploy/compose.yaml asks. The program serves, keeps its data over a restart, and stops in order.
// The test has no base image, so it makes the user and the folders of that image itself.
func TestDeployedImage(t *testing.T) {
	if os.Getenv("CHART") == "" {
		t.Skip("make check-deploy runs it")
	}
	if os.Getuid() != 0 {
		t.Skip("only root may change the root directory")
	}
	image := imageOf(t)
	server := serving.New(t)
	server.Program = image.run(t)
	t.Cleanup(server.Kill)

	server.Start("127.0.0.1:0")
	assert.Equal(t, http.StatusOK, send(t, server, "PUT", "/dav/plan", "text"))
	server.Stop()
	server.Start(server.Address())
	assert.Equal(t, http.StatusOK, send(t, server, "GET", "/dav/plan", ""))
	server.Stop()

	made, err := os.Stat(filepath.Join(image.data, "member"))
	require.NoError(t, err)
	assert.Equal(t, nonroot, fmt.Sprint(made.Sys().(*syscall.Stat_t).Uid))
	version, err := exec.Command(server.Program, "version").CombinedOutput()
	require.NoError(t, err, string(version))
}

// send sends a request, and returns the status 200 for any success.
func send(t *testing.T, s *serving.Server, method, path, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	if response.StatusCode < 300 {
		return http.StatusOK
	}
	return response.StatusCode
}

// image is the last stage of the Dockerfile.
type image struct {
	root, data string
	env        []string
	entry      []string
}

// nonroot is the id of the user and the group of the base image.
const nonroot = "65532"

func imageOf(t *testing.T) image {
	t.Helper()
	text, err := os.ReadFile("../../deploy/Dockerfile")
	require.NoError(t, err)
	build, last, _ := strings.Cut(string(text), "\nFROM gcr.io/distroless/static-debian12:nonroot\n")
	flags := regexp.MustCompile(`CGO_ENABLED=0 go build (.*) -o /out/holdfast (\./cmd/holdfast)`).FindStringSubmatch(build)
	require.NotNil(t, flags, "the Dockerfile builds a program without libraries")
	i := image{root: t.TempDir(), data: t.TempDir()}
	for _, dir := range []string{"etc/ssl/certs", "tmp", "proc", "dev"} { // of the base image
		require.NoError(t, os.MkdirAll(filepath.Join(i.root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(i.root, "etc/passwd"), []byte("nonroot:x:"+nonroot+":"+nonroot+":nonroot:/:/sbin/nologin\n"), 0o600))
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "COPY":
			i.copy(t, rest, strings.ReplaceAll(flags[1], `"`, ""))
		case "ENV":
			i.env = append(i.env, strings.Fields(rest)...)
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(rest), &i.entry))
		case "CMD":
			require.Equal(t, `["serve"]`, rest)
		case "VOLUME":
			require.Equal(t, "/data", rest)
		case "EXPOSE", "":
		default:
			require.Fail(t, "an instruction that this test does not know", line)
		}
	}
	return i
}

// copy carries out a COPY from the stage that builds.
func (i image) copy(t *testing.T, rest, flags string) {
	t.Helper()
	words := strings.Fields(strings.TrimPrefix(rest, "--from=build "))
	to := filepath.Join(i.root, words[len(words)-1])
	switch from := words[len(words)-2]; from {
	case "/out/data":
		require.Equal(t, "--chown=nonroot:nonroot", words[0])
		require.NoError(t, os.Mkdir(to, 0o755))
	case "/out/holdfast":
		link, rest, _ := strings.Cut(flags, "-ldflags=")
		command := exec.Command("go", append(append([]string{"build"}, strings.Fields(link)...), "-ldflags="+rest, "-o", to, "../../cmd/holdfast")...)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	default:
		require.Fail(t, "a file that this test does not know", from)
	}
}

// run returns a script that runs the program of the image with its arguments. Each step of it replaces the one before, so signals
// reach the program. The mounts end with the program.
func (i image) run(t *testing.T) string {
	t.Helper()
	id, err := strconv.Atoi(nonroot)
	require.NoError(t, err)
	require.NoError(t, os.Chown(i.data, id, id))
	mounts := strings.ReplaceAll(`mount --bind ROOT ROOT; mount -o remount,bind,ro ROOT; mount --bind `+i.data+` ROOT/data
mount -t tmpfs tmpfs ROOT/tmp; mount -t proc proc ROOT/proc; mount --bind /dev ROOT/dev`, "ROOT", i.root)
	program := fmt.Sprintf(`exec env -i %s setpriv --no-new-privs "$(command -v chroot)" --userspec=%s:%s --groups= %s %s "$@"`,
		strings.Join(i.env, " "), nonroot, nonroot, i.root, strings.Join(i.entry, " "))
	script := filepath.Join(t.TempDir(), "run")
	text := "#!/bin/sh\nexec unshare -m sh -euc '" + mounts + "\n" + program + "' run \"$@\"\n"
	require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
	return script
}
