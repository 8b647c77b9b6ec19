package wpt

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed testdata
var testdata embed.FS

// A suite serves the public tests under /suite/<file>/<strategy>/<host>/web-locks/, each page, frame and worker of them with
// a navigator whose locks are those of holdfast with that strategy and host.
type suite struct{ root string }

// address is where a test runs: itself, where it is a page, or the page that loads it.
func (s suite) address(file, strategy, host string) (string, error) {
	folder := path.Join("/suite", file, strategy, host, "web-locks") + "/"
	if strings.HasSuffix(file, ".html") {
		return folder + file, nil
	}
	test, err := os.ReadFile(filepath.Join(s.root, "web-locks", file))
	if err != nil {
		return "", err
	}
	query := url.Values{}
	for line := range strings.Lines(string(test)) {
		if script, ok := strings.CutPrefix(strings.TrimSpace(line), "// META: script="); ok && script != "resources/helpers.js" {
			query.Add("script", script)
		}
	}
	query.Add("script", file)
	return folder + "run.html?" + query.Encode(), nil
}

func (s suite) register(mux *http.ServeMux) {
	mux.Handle("/resources/", http.FileServer(http.Dir(s.root)))
	mux.HandleFunc("/resources/testharnessreport.js", func(w http.ResponseWriter, _ *http.Request) {
		write(w, ".js", mine("results.js"))
	})
	mux.HandleFunc("/suite/{file}/{strategy}/{host}/web-locks/{name...}", func(w http.ResponseWriter, r *http.Request) {
		options, err := json.Marshal(map[string]string{
			"strategy": r.PathValue("strategy"), "host": r.PathValue("host"), "root": "wpt " + r.PathValue("file"),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text, err := s.source(r.PathValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		write(w, path.Ext(r.PathValue("name")), withLocks(text, path.Ext(r.PathValue("name")), string(options)))
	})
}

func (s suite) source(name string) (string, error) {
	if name == "run.html" {
		return strings.Replace(mine(name), "SETUP", mine("results.js"), 1), nil
	}
	text, err := os.ReadFile(filepath.Join(s.root, "web-locks", filepath.FromSlash(path.Clean("/"+name))))
	return string(text), err
}

var inline = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// withLocks puts the scripts of a file into functions of the navigator that own.js makes.
func withLocks(text, kind, options string) string {
	prelude := strings.Replace(mine("own.js"), "OPTIONS", options, 1)
	wrap := func(script string) string {
		return prelude + "\n((navigator) => {\n" + script + "\n})(globalThis.own.navigator);"
	}
	if kind == ".js" {
		return wrap(text)
	}
	return inline.ReplaceAllStringFunc(text, func(element string) string {
		return "<script>" + wrap(inline.FindStringSubmatch(element)[1]) + "</script>"
	})
}

func mine(name string) string {
	text, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

func write(w http.ResponseWriter, kind, text string) {
	types := map[string]string{".js": "text/javascript", ".html": "text/html"}
	w.Header().Set("Content-Type", types[kind]+"; charset=utf-8")
	_, _ = fmt.Fprint(w, text)
}
