package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/holdfast-dev/holdfast/internal/static"
	"github.com/holdfast-dev/holdfast/tests/browser"
)

// serve serves the built package as the holdfast binary does, with the benchmark's page beside it. It serves both
// again under /cold/…/ for loads without a cache.
func serve(p *program, dir string) (*browser.Server, error) {
	files, err := static.Handler(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w; run make build", err)
	}
	page, err := script("page.js")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", files)
	mux.Handle("/bench", content("text/html", []byte("<!doctype html><title>bench</title><link rel=icon href='data:,'><script type=module src=/page.js></script>")))
	mux.Handle("/page.js", content("text/javascript", page))
	for _, name := range []string{"raw-worker.js", "raw-writer.js", "raw-record.js", "raw-lease.js", "raw-broker.js"} {
		text, err := script(name)
		if err != nil {
			return nil, err
		}
		mux.Handle("/"+name, content("text/javascript", text))
	}
	if err := goLocker(mux); err != nil {
		return nil, err
	}
	others, err := packaged()
	if err != nil {
		return nil, err
	}
	visited(mux, files, others)
	mux.HandleFunc("/cold/{n}/{file}", func(w http.ResponseWriter, r *http.Request) {
		again := r.Clone(r.Context())
		again.URL.Path = "/" + path.Base(r.URL.Path)
		files.ServeHTTP(w, again)
	})
	return browser.Serve(p, isolated(mux)), nil
}

// goLocker serves the Go program of locker/ and the script that runs it.
func goLocker(mux *http.ServeMux) error {
	const wasm = ".cache/bench-locker.wasm"
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", wasm, "./tests/bench/locker")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	exec, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "lib/wasm/wasm_exec.js"))
	if err != nil {
		return err
	}
	start, err := script("go-locker.js")
	if err != nil {
		return err
	}
	mux.Handle("/go-locker.js", content("text/javascript", append(exec, start...)))
	mux.HandleFunc("/locker.wasm", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		http.ServeFile(w, r, wasm)
	})
	return nil
}

// isolated makes the browser isolate the pages from other origins. Their clocks then have a resolution of 5 µs
// instead of 100 µs.
func isolated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		w.Header().Set("Cross-Origin-Embedder-Policy", "require-corp")
		next.ServeHTTP(w, r)
	})
}

func content(kind string, data []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		static.SecurityHeaders(w.Header())
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = w.Write(data)
	})
}

// script bundles one of the scripts in this folder.
func script(name string) ([]byte, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{"tests/bench/" + name},
		Bundle:      true,
		Format:      api.FormatESModule,
		Target:      api.ES2022,
		External:    []string{"/holdfast.js", "/go-locker.js"},
		LogLevel:    api.LogLevelSilent,
	})
	if len(result.Errors) > 0 {
		text := api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage})
		return nil, fmt.Errorf("bundle %s:\n%s", name, strings.Join(text, ""))
	}
	return result.OutputFiles[0].Contents, nil
}
