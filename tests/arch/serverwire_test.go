package arch

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// interfaceNames are the names in the description of the server's interface, openapi.json.
type interfaceNames struct {
	fields, parameters, headers, codes, events []string
}

// describedNames reads the description. A test of server/httpapi compares its fields with the structs of the server.
func describedNames(t *testing.T) (n interfaceNames) {
	t.Helper()
	var description map[string]any
	require.NoError(t, json.Unmarshal([]byte(read(t, "server/httpapi/openapi.json")), &description))
	fields, parameters, headers := map[string]bool{}, map[string]bool{}, map[string]bool{}
	eachObject(description, func(object map[string]any) {
		properties, _ := object["properties"].(map[string]any)
		for name := range properties {
			fields[name] = true
		}
		sent, _ := object["headers"].(map[string]any)
		for name := range sent {
			headers[name] = true
		}
		name, _ := object["name"].(string)
		switch object["in"] {
		case "query":
			parameters[name] = true
		case "header":
			headers[name] = true
		}
	})
	n.fields, n.parameters, n.headers = slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(parameters)), slices.Sorted(maps.Keys(headers))
	schemas := description["components"].(map[string]any)["schemas"].(map[string]any)
	n.codes = enum(schemas["ErrorCode"])
	n.events = enum(schemas["Event"].(map[string]any)["properties"].(map[string]any)["type"])
	return n
}

// eachObject calls visit with each object of a JSON value.
func eachObject(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, child := range value {
			eachObject(child, visit)
		}
	case []any:
		for _, child := range value {
			eachObject(child, visit)
		}
	}
}

func enum(schema any) (names []string) {
	for _, name := range schema.(map[string]any)["enum"].([]any) {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

var (
	jsonTag      = regexp.MustCompile("json:\"(\\w+)")
	ownHeader    = regexp.MustCompile(`"(Holdfast-(?:Token|Save|Order|Saved-At|Generation|Revision))"`)
	anyHeader    = regexp.MustCompile(`"(Holdfast-[\w-]+)"`)
	eventType    = regexp.MustCompile(`"(document\.\w+)"`)
	parameter    = regexp.MustCompile(`[?&](\w+)=`)
	comparedCode = regexp.MustCompile(`\.Error [!=]= "(\w+)"`)
)

// The remote package declares the names of the interface for the browser, and the server for itself. Both are those of
// the description.
func TestRemoteAndServerNameTheSame(t *testing.T) {
	n := describedNames(t)
	assert.Equal(t, n.events, named(t, "remote", eventType), "the types of events in remote")
	assert.Equal(t, n.events, named(t, "server/events", eventType), "the types of events in server/events")
	for _, m := range eventType.FindAllStringSubmatch(read(t, "web/demo/machines.ts"), -1) {
		assert.Contains(t, n.events, m[1], "the types of events in web/demo")
	}
	assert.Subset(t, n.headers, named(t, "remote", anyHeader), "the headers in remote")
	assert.Equal(t, only(n.headers, "Holdfast-"), named(t, "server/httpapi", ownHeader), "the headers in server/httpapi")
	assert.Subset(t, n.headers, named(t, "client", ownHeader), "the headers in client")
	assert.Subset(t, n.parameters, named(t, "remote", parameter), "the parameters in remote")
	assert.Subset(t, n.codes, named(t, "remote", comparedCode), "the codes in remote")
	assert.Subset(t, n.fields, named(t, "client", jsonTag), "the fields in client")
	assert.Subset(t, n.fields, named(t, "tests/remotehttp", jsonTag), "the fields in tests/remotehttp")
	for what, list := range map[string][]string{"parameters": named(t, "remote", parameter), "codes": named(t, "remote", comparedCode), "events": n.events} {
		assert.Greater(t, len(list), 4, "the regular expression for the %s no longer finds them", what)
	}
}

// The names of headers and event types stand once in remote and in server/httpapi, and nowhere else in the packages of the
// browser and in their tests.
func TestNamesOfTheInterfaceAreDeclaredOnce(t *testing.T) {
	for _, dir := range []string{"remote", "remote/remotetest", "jsbridge", "opfs", "wasm", "server/httpapi", "tests/remotehttp", "tests/remoteserver", "tests/simulation"} {
		home := map[string]string{"remote": "wire.go", "server/httpapi": "replies.go"}[dir]
		for _, file := range sourcesOf(t, dir) {
			if !strings.HasSuffix(file, "/"+home) || home == "" {
				text := read(t, file)
				assert.Empty(t, ownHeader.FindString(text)+eventType.FindString(text), file)
			}
		}
	}
}

// port.js reads the fields and headers of a reply for Go. It names the same ones as tests/remotehttp does for Go programs.
func TestPortReadsTheFieldsOfReplies(t *testing.T) {
	port := read(t, "jsbridge/port.js")
	assert.Equal(t, named(t, "tests/remotehttp", jsonTag), patternNames(port))
	headers := map[string]bool{}
	for _, m := range regexp.MustCompile(`headers\.get\("(Holdfast-[\w-]+)"\)`).FindAllStringSubmatch(port, -1) {
		headers[m[1]] = true
	}
	replied := slices.DeleteFunc(named(t, "remote", anyHeader), func(name string) bool { return name == "Holdfast-Order" }) // of requests alone
	assert.Equal(t, replied, slices.Sorted(maps.Keys(headers)))
}

func only(names []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// pattern matches a pattern of JavaScript that takes fields out of a reply or an event.
var pattern = regexp.MustCompile(`(?s)const \{ ([^}]*) \} = (?:await response\.json|holders\?|\{ \.\.\.JSON)`)

// patternNames returns the names that the patterns of a script take out of replies and events.
func patternNames(script string) []string {
	names := map[string]bool{}
	for _, m := range pattern.FindAllStringSubmatch(script, -1) {
		for one := range strings.SplitSeq(m[1], ",") {
			if name := regexp.MustCompile(`^\w+`).FindString(strings.TrimSpace(one)); name != "" {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func TestPatternNames(t *testing.T) {
	assert.Equal(t, []string{"a", "b", "d"}, patternNames(`
const { a, b = "", ...rest } = await response.json();
const { d = 0 } = { ...JSON.parse(data) };
const { e } = other;`))
}
