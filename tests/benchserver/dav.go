package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	lockBody = `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>` +
		`<D:locktype><D:write/></D:locktype><D:owner>bench</D:owner></D:lockinfo>`
	davCycle = "lock, save 4 KiB, unlock, p50 and p99"
)

// dav measures what a desktop program does to save a file: over WebDAV, over the API, and over Apache's WebDAV module.
func dav(t *table, s *server, rounds int) error {
	data := bytes.Repeat([]byte("x"), 4<<10)
	overAPI := func(i int) (time.Duration, error) {
		document, begin := "api-"+strconv.Itoa(i%50), time.Now()
		token, err := s.call("POST", document, "bench")
		if err == nil {
			err = s.put(document, token, data)
		}
		if err == nil {
			_, err = s.call("DELETE", document, "bench")
		}
		return time.Since(begin), err
	}
	if err := t.repeat(davCycle, "holdfast, API", "", rounds, overAPI); err != nil {
		return err
	}
	if err := t.repeat(davCycle, "holdfast, WebDAV", "", rounds, davFile(s.client, s.base+"/dav/file-", data)); err != nil {
		return err
	}
	addr, stop, err := startApache()
	if err != nil {
		return err
	}
	defer stop()
	return t.repeat(davCycle, "Apache mod_dav_fs, which flushes nothing to the disk", "", rounds, davFile(s.client, "http://"+addr+"/file-", data))
}

// davFile locks, writes and unlocks one of 50 files.
func davFile(client *http.Client, base string, data []byte) func(int) (time.Duration, error) {
	return func(i int) (time.Duration, error) {
		url, begin := base+strconv.Itoa(i%50), time.Now()
		header, err := send(client, "LOCK", url, []byte(lockBody), "Timeout", "Second-60")
		if err != nil {
			return 0, err
		}
		token := header.Get("Lock-Token")
		if _, err := send(client, "PUT", url, data, "If", "("+token+")"); err != nil {
			return 0, err
		}
		_, err = send(client, "UNLOCK", url, nil, "Lock-Token", token)
		return time.Since(begin), err
	}
}

// send sends a request of WebDAV with a header, and returns the headers of the response.
func send(client *http.Client, method, url string, body []byte, name, value string) (http.Header, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set(name, value)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s\n%s", method, url, response.Status, text)
	}
	return response.Header, err
}

// startApache runs Debian's Apache with its WebDAV module on a directory of its own.
func startApache() (addr string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "apache")
	if err != nil {
		return "", nil, err
	}
	if addr, err = freeAddr(); err != nil {
		return "", nil, err
	}
	for _, name := range []string{"", "files", "locks"} {
		_ = os.Mkdir(filepath.Join(dir, name), 0o755)
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil { // for the user www-data, where root runs this
			return "", nil, err
		}
	}
	var config strings.Builder
	for _, module := range []string{"mpm_event", "authz_core", "dav", "dav_fs"} {
		fmt.Fprintf(&config, "LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n", module, module)
	}
	fmt.Fprintf(&config, "ServerName localhost\nListen %s\nServerRoot %[2]s\nPidFile %[2]s/pid\nErrorLog %[2]s/errors\nDocumentRoot %[2]s/files\n"+
		"DavLockDB %[2]s/locks/db\nMaxKeepAliveRequests 0\n<Directory %[2]s/files>\nDav On\nRequire all granted\n</Directory>\n", addr, dir)
	if os.Getuid() == 0 {
		config.WriteString("User www-data\nGroup www-data\n")
	}
	path := filepath.Join(dir, "conf")
	if err := os.WriteFile(path, []byte(config.String()), 0o644); err != nil {
		return "", nil, err
	}
	process := exec.Command("apache2", "-f", path, "-DFOREGROUND")
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 1000 {
		response, err := http.Get("http://" + addr)
		if err == nil {
			response.Body.Close()
			return addr, stop, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("apache2 did not become ready")
}
