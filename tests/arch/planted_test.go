package arch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every rule finds the violation that is planted here, and accepts correct neighbours.

func TestPlantedArrows(t *testing.T) {
	for _, arrow := range []struct {
		from, to string
		allowed  bool
	}{
		{"lock", "lock/locktest", true},
		{"lock", "jsbridge", false},
		{"lock", "autosave", false},
		{"autosave", "lock", true},
		{"autosave", "opfs", false},
		{"jsbridge", "lock", true},
		{"jsbridge", "opfs", false},
		{"jsbridge", "wasm", false},
		{"opfs", "jsbridge", true},
		{"opfs", "wasm", false},
		{"wasm", "opfs", true},
		{"wasm", "server", false},
		{"server", "internal", true},
		{"server", "lock", false},
		{"server", "web", false},
		{"client", "lock", true},
		{"client", "remote", false},
		{"server", "client", false},
		{"cmd/holdfast", "client", true},
		{"cmd/holdfast", "web", true},
		{"cmd/holdfast", "wasm", false},
		{"attic", "lock", false},
	} {
		from, to := module+"/"+arrow.from, module+"/"+arrow.to
		for _, p := range []pkg{
			{ImportPath: from, Imports: []string{"fmt", to}},
			{ImportPath: from, TestImports: []string{to}},
			{ImportPath: from, XTestImports: []string{to}},
		} {
			assert.Equal(t, arrow.allowed, len(wrongArrows([]pkg{p})) == 0, "%s → %s", arrow.from, arrow.to)
		}
	}
}

func TestPlantedUndrawnArrow(t *testing.T) {
	assert.Len(t, undrawn("\n| `internal` | nothing |\n| `lock` | `internal` |\n"), len(mayImport)-2)
}

// The tests of the client start a server. The client imports none.
func TestPlantedServerInTheClient(t *testing.T) {
	assert.NotEmpty(t, wrongArrows([]pkg{{ImportPath: module + "/client", Imports: []string{module + "/server"}}}))
	assert.Empty(t, wrongArrows([]pkg{{ImportPath: module + "/client", XTestImports: []string{module + "/server"}}}))
	assert.NotEmpty(t, wrongArrows([]pkg{{ImportPath: module + "/client", XTestImports: []string{module + "/web"}}}))
}

func TestPlantedJS(t *testing.T) {
	for _, js := range []string{syscallJS, safejs, safejs + "/catch"} {
		for _, name := range []string{"lock", "lock/locktest", "autosave", "server", "cmd/holdfast", "web"} {
			assert.NotEmpty(t, strayJS([]pkg{{ImportPath: module + "/" + name, Imports: []string{js}}}), name)
			assert.NotEmpty(t, strayJS([]pkg{{ImportPath: module + "/" + name, TestImports: []string{js}}}), name)
		}
		for _, name := range jsFolders {
			assert.Empty(t, strayJS([]pkg{{ImportPath: module + "/" + name, Imports: []string{js}}}), name)
		}
	}
}

func TestPlantedJSBehindAnotherModule(t *testing.T) {
	sly := pkg{ImportPath: "example.com/sly", Imports: []string{syscallJS}}
	std := pkg{ImportPath: "syscall", Standard: true, Imports: []string{syscallJS}}
	lock := pkg{ImportPath: module + "/lock", Deps: []string{"syscall", syscallJS}}
	assert.Empty(t, strayJS([]pkg{sly, std, lock}), "the standard library may")

	lock.Deps = append(lock.Deps, sly.ImportPath)
	assert.NotEmpty(t, strayJS([]pkg{sly, std, lock}))
	lock.Deps = []string{safejs}
	assert.NotEmpty(t, strayJS([]pkg{lock}))
}

func TestPlantedEtcd(t *testing.T) {
	const client = etcd + "/etcd/client/v3"
	for _, p := range []pkg{
		{ImportPath: module + "/server/rooms", Imports: []string{client}},
		{ImportPath: module + "/server/rooms", XTestImports: []string{client}},
		{ImportPath: module + "/lock", TestImports: []string{client}},
		{ImportPath: module + "/opfs", Deps: []string{client}},
	} {
		assert.NotEmpty(t, strayEtcd([]pkg{p}), p)
	}
	for _, p := range []pkg{
		{ImportPath: etcdHome, Imports: []string{client}},
		{ImportPath: etcdHome + "/kvtest", Imports: []string{client}},
		{ImportPath: module + "/server/rooms", Imports: []string{etcdHome}, Deps: []string{client}},
		{ImportPath: "example.com/other", Imports: []string{client}},
	} {
		assert.Empty(t, strayEtcd([]pkg{p}), p)
	}
}

func TestPlantedWeight(t *testing.T) {
	for _, heavy := range []string{"net/http", "encoding/json"} {
		assert.NotEmpty(t, tooHeavy([]pkg{{ImportPath: module + "/wasm", Deps: []string{"fmt", heavy}}}))
		assert.Empty(t, tooHeavy([]pkg{{ImportPath: module + "/server", Deps: []string{heavy}}}))
	}
	wasm := pkg{ImportPath: module + "/wasm", Deps: []string{"fmt", module + "/lock"}}
	assert.Empty(t, tooHeavy([]pkg{wasm}))
	for _, heavy := range []string{"fmt", "os"} {
		assert.NotEmpty(t, tooHeavy([]pkg{wasm, {ImportPath: module + "/lock", Imports: []string{heavy}}}))
		assert.Empty(t, tooHeavy([]pkg{wasm, {ImportPath: module + "/server", Imports: []string{heavy}}}))
		assert.NotEmpty(t, tooHeavy([]pkg{{ImportPath: module + "/wasm", Imports: []string{heavy}}}))
	}
}

func TestPlantedLength(t *testing.T) {
	lines := func(path string, n int) []source {
		return []source{{path, []byte(strings.Repeat("x\n", n))}}
	}
	for _, path := range []string{"lock/a.go", "web/src/a.ts", "web/src/holdfast-page.d.ts", "web/demo/demo.css"} {
		assert.NotEmpty(t, tooLong(lines(path, maxLines+1)), path)
		assert.Empty(t, tooLong(lines(path, maxLines)), path)
	}
	assert.NotEmpty(t, tooLong([]source{{"a.go", []byte(strings.Repeat("x\n", maxLines) + "x")}}))
	assert.Empty(t, tooLong(lines("go.sum", 5000)))
}

func TestPlantedMachineNames(t *testing.T) {
	for _, text := range []string{
		"cd /wo" + "rk/main",
		`path = "/ro` + `ot/go"`,
		"(see /ho" + "me/ann/notes)",
		"HOME=/Us" + "ers/ann",
		"https://registry.np" + "mjs.org/typescript",
		"GOPROXY=https://proxy.go" + "lang.org",
		"SUM.GO" + "LANG.ORG",
		"http://artif" + "actory.example.com/npm",
	} {
		assert.NotEmpty(t, machineNames([]source{{"README.md", []byte(text)}}), text)
	}
	for _, text := range []string{"a/wo" + "rk/b", "the /work" + "er.js script", "https://go.dev/", "/ho" + "me", ""} {
		assert.Empty(t, machineNames([]source{{"README.md", []byte(text)}}), text)
	}
	resolved := []byte(`{"resolved": "https://example.com/a.tgz"}`)
	assert.NotEmpty(t, machineNames([]source{{"web/package-lock.json", resolved}}))
	assert.Empty(t, machineNames([]source{{"web/other.json", resolved}}))
}

func goSource(t *testing.T, path, text string) parsed {
	t.Helper()
	p, err := parse(source{path, []byte(text)})
	require.NoError(t, err)
	return p
}

func TestPlantedLongFunctions(t *testing.T) {
	for _, head := range []string{"func f() {", "func (m *model) f() {", "// Not counted.\n// Not counted.\nfunc TestF(t *testing.T) {"} {
		for _, path := range []string{"lock/a.go", "lock/a_test.go", "opfs/a_js_test.go"} {
			text := func(lines int) string { return "package a\n\n" + head + strings.Repeat("\n\tx()", lines) + "\n}\n" }
			assert.Empty(t, longFunctions(goSource(t, path, text(maxFunctionLines))), head)
			assert.NotEmpty(t, longFunctions(goSource(t, path, text(maxFunctionLines+1))), head)
		}
	}
	assert.Empty(t, longFunctions(goSource(t, "lock/a.go", "package a\n\nvar table = []int{"+strings.Repeat("\n\t1,", 100)+"\n}\n")))
}

func TestPlantedFuncOf(t *testing.T) {
	for _, text := range []string{
		"package a\nimport \"syscall/js\"\nvar f = js.FuncOf(nil)",
		"package a\nimport j \"syscall/js\"\nvar f = j.FuncOf",
		"package a\nimport \"github.com/hack-pad/safejs\"\nfunc g() { safejs.FuncOf(nil) }",
		"package a\nimport . \"syscall/js\"\nvar f = FuncOf(nil)",
	} {
		assert.NotEmpty(t, straysFuncOf(goSource(t, "wasm/a_js.go", text)), text)
		assert.Empty(t, straysFuncOf(goSource(t, "jsbridge/a_js.go", text)), text)
	}
	assert.Empty(t, straysFuncOf(goSource(t, "wasm/a_js.go",
		"package a\nimport \"github.com/holdfast-dev/holdfast/jsbridge\"\nvar f = jsbridge.FuncOf")))
}

func TestPlantedBuildTags(t *testing.T) {
	const body = "\n\npackage a\n\nimport _ \"syscall/js\"\n"
	for _, tag := range []string{"", "//go:build js", "//go:build wasm", "//go:build js || wasm", "//go:build !js && !wasm"} {
		assert.NotEmpty(t, unmarkedJS(goSource(t, "wasm/a_js.go", tag+body)), tag)
	}
	for _, tag := range []string{"//go:build js && wasm", "//go:build js && wasm && faults", "//go:build js && wasm && !faults"} {
		assert.Empty(t, unmarkedJS(goSource(t, "wasm/a_js.go", tag+body)), tag)
		assert.Empty(t, unmarkedJS(goSource(t, "wasm/a_js_test.go", tag+body)), tag)
		assert.NotEmpty(t, unmarkedJS(goSource(t, "wasm/a.go", tag+body)), "its name does not say so")
	}
	assert.NotEmpty(t, unmarkedJS(goSource(t, "wasm/b_js.go", "package a")), "its name says so")
	assert.Empty(t, unmarkedJS(goSource(t, "wasm/doc.go", "// Package a.\npackage a")))
}

func TestPlantedScripts(t *testing.T) {
	for _, c := range []struct {
		file, text string
		allowed    bool
	}{
		{"web/src/a.ts", `import type { Files } from "../../opfs/files.js";`, true},
		{"web/src/a.ts", "import {\n  take,\n} from \"../../jsbridge/port.js\";", true},
		{"web/src/a.ts", `import x from "../../tests/soak/common.js";`, false},
		{"opfs/files.js", `import { Patience } from "./patience.js";`, true},
		{"opfs/files.js", `import { calls } from "../web/src/calls.js";`, false},
		{"opfs/files.js", `export * from "../jsbridge/port.js";`, false},
		{"jsbridge/port.js", `const late = await import("../opfs/files.js");`, false},
		{"opfs/files.js", `/** @type {import("../web/src/wire").Wire} */`, false},
		{"web/src/a.ts", `import React from "react";`, true},
	} {
		assert.Equal(t, c.allowed, len(wrongScripts([]source{{c.file, []byte(c.text)}})) == 0, "%s: %s", c.file, c.text)
	}
}

func TestPlantedStandins(t *testing.T) {
	for _, call := range []string{"strconv.AppendFloat(b, f, 'f', -1, 64)", "lease.At.Format(time.RFC3339)", "time.ParseDuration(s)"} {
		text := []byte("x := " + call)
		assert.NotEmpty(t, unbuilt([]source{{"autosave/a.go", text}}), call)
		assert.Empty(t, unbuilt([]source{{"autosave/a_test.go", text}, {"server/a.go", text}}), call)
	}
	assert.Empty(t, unbuilt([]source{{"lock/a.go", []byte("strconv.AppendInt(b, n, 10)")}}))
}

func TestPlantedDecisions(t *testing.T) {
	whole := "# 1. Title\n\n## Context\n\n## Decision\n\n## Consequences\n" + strings.Repeat("word ", maxDecision-3)
	one := func(name, text string) []source { return []source{{"docs/adr/" + name, []byte(text)}} }
	assert.Empty(t, oddDecisions(one("0001-title.md", whole)))
	assert.NotEmpty(t, oddDecisions(one("0001-title.md", whole+"word")))
	assert.NotEmpty(t, oddDecisions(one("0001-title.md", strings.Replace(whole, "## Context\n", "", 1))))
	assert.NotEmpty(t, oddDecisions(append(one("0001-title.md", whole), one("0001-other.md", whole)...)))
}

func TestPlantedSentences(t *testing.T) {
	for _, text := range []string{"- **Who asks** gets it.", "- **It waits.** Who asks gets it.", "It waits. What it has is kept.", "The page is told.", "The tab that has it.", "A thief waits."} {
		assert.NotEmpty(t, unclearSentences([]source{{"docs/guide.md", []byte(text)}}), text)
	}
	for _, text := range []string{"Who may write?", "```sh\nWho asks\n```", "The holder gets what it asked for."} {
		assert.Empty(t, unclearSentences([]source{{"docs/guide.md", []byte(text)}}), text)
	}
	assert.Empty(t, unclearSentences([]source{{"docs/reference.md", []byte("Who asks")}}))
	for _, text := range []string{
		"// Who asks gets it.", "x() // The client is told so.", "// It ends. What is left goes.", "/*\n Whoever asks waits.\n*/",
	} {
		assert.NotEmpty(t, unclearSentences([]source{{"server/locks/x.go", []byte(text)}}), text)
	}
	for _, text := range []string{"// The client asks.", `x("Who asks")`, "// Who asks?"} {
		assert.Empty(t, unclearSentences([]source{{"server/locks/x.go", []byte(text)}}), text)
	}
	for _, text := range []string{"/** Who asks gets it. */", "\t * Whoever asks waits.", "x() // The page is told so."} {
		assert.NotEmpty(t, unclearSentences([]source{{"server/locks/x.ts", []byte(text)}}), text)
	}
	for _, text := range []string{"/** The page asks. */", `const x = "Who asks"`} {
		assert.Empty(t, unclearSentences([]source{{"server/locks/x.ts", []byte(text)}}), text)
	}
}
