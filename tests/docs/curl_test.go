package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
)

// curl runs the curl commands of the documentation against a server of the test. A token in a command belongs to some
// reader's server, so the last token of this server replaces it.
type curl struct {
	client http.Client
	site   string
	dir    string // contains the files that the commands send
	token  string
}

func newCurl(t *testing.T, site string) *curl {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"plan.txt", "plan.odt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("a plan"), 0o644))
	}
	return &curl{client: http.Client{Jar: jar, Timeout: 10 * time.Second}, site: site, dir: dir}
}

func (c *curl) run(args []string) error {
	request, err := c.request(args)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	var answer struct{ Token json.Number }
	if json.Unmarshal(body, &answer) == nil && answer.Token != "" {
		c.token = answer.Token.String()
	}
	return nil
}

var port8080 = regexp.MustCompile(`^http://localhost:8080(/|$)`)

func (c *curl) request(args []string) (*http.Request, error) {
	method, address := http.MethodGet, ""
	header, body := http.Header{}, []byte(nil) // @ and a name stand for a file
	for len(args) > 0 {
		name, rest := args[0], args[1:]
		if !strings.HasPrefix(name, "-") {
			address, args = name, rest
			continue
		}
		if len(rest) == 0 {
			return nil, fmt.Errorf("%s has no value", name)
		}
		value := rest[0]
		args = rest[1:]
		switch name {
		case "-c", "-b", "-o": // the jar keeps the cookies, and the answer is not kept
		case "-u":
			header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(value)))
		case "-X":
			method = value
		case "-H":
			key, text, _ := strings.Cut(value, ": ")
			if key == remote.HeaderToken {
				text = c.token
			}
			header.Set(key, text)
		case "-d", "--data-binary":
			body = []byte(value)
		case "-T":
			method, body = http.MethodPut, []byte("@"+value)
		default:
			return nil, fmt.Errorf("no test knows curl's %s", name)
		}
	}
	if !port8080.MatchString(address) {
		return nil, errors.New("the documentation's server is http://localhost:8080, not " + address)
	}
	if file, ok := strings.CutPrefix(string(body), "@"); ok {
		data, err := os.ReadFile(filepath.Join(c.dir, file))
		if err != nil {
			return nil, err
		}
		body = data
	}
	request, err := http.NewRequest(method, strings.Replace(address, "http://localhost:8080", c.site, 1), bytes.NewReader(body))
	if err == nil {
		request.Header = header
	}
	return request, err
}
