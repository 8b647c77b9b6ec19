package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/remote"
	"github.com/holdfast-dev/holdfast/server/httpapi"
)

// description is the OpenAPI description, as the tests of this package hold every answer against it.
type description struct {
	paths   map[string]any
	matches map[string]*regexp.Regexp // by path
	schemas *jsonschema.Compiler
	mu      sync.Mutex // of schemas
}

var openAPI = sync.OnceValue(func() *description {
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(httpapi.Description))
	if err != nil {
		panic(err)
	}
	closeObjects(text)
	d := &description{matches: map[string]*regexp.Regexp{}, schemas: jsonschema.NewCompiler()}
	d.schemas.AssertFormat()
	if err := d.schemas.AddResource("openapi.json", text); err != nil {
		panic(err)
	}
	d.paths = text.(map[string]any)["paths"].(map[string]any)
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for path := range d.paths {
		d.matches[path] = regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`) + "$")
	}
	return d
})

// closeObjects makes fields that are not described an error, which the description does not: clients must bear new ones.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["properties"]; ok && node["type"] == "object" {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

// operation finds the description of a request. Name is "" for a path or a method that there is not.
func (d *description) operation(method, path string) (name, pointer string, op map[string]any) {
	path, _, _ = strings.Cut(path, "?")
	for template, matches := range d.matches {
		item := d.paths[template].(map[string]any)
		if op, ok := item[strings.ToLower(method)].(map[string]any); ok && matches.MatchString(path) {
			pointer = "openapi.json#/paths/" + strings.ReplaceAll(template, "/", "~1") + "/" + strings.ToLower(method)
			return op["operationId"].(string), pointer, op
		}
	}
	return "", "", nil
}

// check holds a request and its answer against the description.
func (d *description) check(method, path string, body []byte, a answer) error {
	if !strings.HasPrefix(path, "/api/") || method == http.MethodHead || method == http.MethodOptions {
		return nil
	}
	name, pointer, op := d.operation(method, path)
	if name == "" {
		return d.validate("openapi.json#/components/schemas/Error", a.text)
	}
	status := fmt.Sprint(a.status)
	responses := op["responses"].(map[string]any)
	response, ok := responses[status].(map[string]any)
	if !ok && a.status < 400 {
		return fmt.Errorf("status %s of %s is not described", status, name)
	}
	at := pointer + "/responses/" + status
	if !ok {
		at, response = pointer+"/responses/default", responses["default"].(map[string]any)
	}
	if ref, ok := response["$ref"].(string); ok {
		at, response = "openapi.json"+ref, map[string]any{"content": map[string]any{"application/json": true}}
	}
	content, _ := response["content"].(map[string]any)
	if _, isJSON := content["application/json"]; isJSON {
		if err := d.validate(at+"/content/application~1json/schema", a.text); err != nil {
			return err
		}
	} else if len(content) == 0 && len(a.text) > 0 {
		return fmt.Errorf("status %s of %s has a body that is not described", status, name)
	}
	if request, ok := op["requestBody"].(map[string]any); ok && a.status < 400 && len(body) > 0 && string(body) != "null" && request["content"].(map[string]any)["application/json"] != nil {
		return d.validate(pointer+"/requestBody/content/application~1json/schema", body)
	}
	return nil
}

func (d *description) validate(schema string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%q is no JSON: %w", text, err)
	}
	d.mu.Lock()
	compiled, err := d.schemas.Compile(schema)
	d.mu.Unlock()
	if err == nil {
		err = compiled.Validate(value)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s is not as %s describes it", text, schema), err)
	}
	return nil
}

// describedCalls makes calls that must succeed, and notes the names of their operations.
type describedCalls struct {
	t    *testing.T
	seen map[string]bool
}

func (d describedCalls) note(method, path string) {
	name, _, _ := openAPI().operation(method, path)
	d.seen[name] = true
}

func (d describedCalls) ok(c client, method, path string, body any) answer {
	d.t.Helper()
	a := c.do(method, path, body)
	require.Less(d.t, a.status, 300, string(a.text))
	d.note(method, path)
	return a
}

// Each call answers with a success that is described. All tests of this package hold all other answers against the description, too.
func TestDescribedCallsSucceed(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "user:root * admin\nsigned-in * read lock write\n")
	ann, bob, root := s.as(t, "ann-key"), s.as(t, "bob-key"), s.as(t, "root-key")
	d := describedCalls{t, map[string]bool{"streamEvents": true, "beginSignIn": true, "endSignIn": true}} // these redirect, and a WebSocket: see the tests of events
	d.ok(ann, "GET", "/api/openapi.json", nil)
	d.callDocument(ann, bob, root)
	d.callPaths(ann, root)
	for _, method := range []string{"GET", "POST", "DELETE"} {
		d.ok(ann, method, "/api/session", nil)
	}
	for _, item := range openAPI().paths {
		for method, op := range item.(map[string]any) {
			if method != "parameters" {
				assert.Contains(t, d.seen, op.(map[string]any)["operationId"])
			}
		}
	}
}

func (d describedCalls) callDocument(ann, bob, root client) {
	d.t.Helper()
	d.ok(bob, "GET", lockOf("d"), nil)
	token := fmt.Sprint(d.ok(ann, "POST", lockOf("d")+"?ticket=t", map[string]any{"holder_name": "x"}).token())
	holder := ann.with(remote.HeaderToken, token)
	d.ok(bob, "GET", lockOf("d"), nil)
	d.ok(holder, "PUT", lockOf("d"), nil)
	d.ok(holder, "PUT", contentOf("d"), "text")
	d.ok(bob, "GET", contentOf("d"), nil)
	d.ok(bob, "GET", "/api/documents/d/history", nil)
	d.ok(bob, "GET", "/api/documents?limit=1", nil)

	assertError(d.t, <-d.ask(bob, holder, "refuse"), http.StatusConflict, "handover_refused")
	asked := d.ask(bob, holder, "accept")
	d.ok(holder, "DELETE", lockOf("d"), nil)
	granted := <-asked
	require.Equal(d.t, http.StatusOK, granted.status, string(granted.text))
	d.seen["askForLock"] = true
	d.ok(root, "POST", lockOf("d")+"/break", map[string]any{"reason": "maintenance"})
	d.ok(root, "GET", "/api/backup", nil)
	d.ok(root, "DELETE", "/api/documents/d", nil)
}

// ask has bob ask for the lock, and the holder reply. The answer to bob comes through the channel.
func (d describedCalls) ask(bob, holder client, reply string) <-chan answer {
	d.t.Helper()
	asked := make(chan answer, 1)
	go func() {
		a, _ := bob.try(d.t.Context(), "POST", lockOf("d")+"/ask", map[string]any{"grace_ms": 20_000})
		asked <- a
	}()
	path := lockOf("d") + "/" + reply
	require.Eventually(d.t, func() bool { // until the question has arrived
		a, err := holder.try(d.t.Context(), "POST", path, map[string]any{})
		return err == nil && a.status == http.StatusOK
	}, 20*time.Second, 5*time.Millisecond)
	d.note("POST", path)
	return asked
}

func (d describedCalls) callPaths(ann, root client) {
	d.t.Helper()
	place := map[string]any{"paths": [][]string{{"a", "b c"}}, "slots": 2, "ttl_ms": 5000, "wait_ms": 0, "ticket": "u", "replace": []int64{}}
	lease, _ := d.ok(ann, "POST", "/api/locks", place).body["lease_id"].(string)
	d.ok(ann, "PUT", "/api/locks/"+lease, nil)
	d.ok(root, "GET", "/api/locks?path=a/b%2520c", nil)
	d.ok(root, "POST", "/api/locks/"+lease+"/break", map[string]any{"reason": "maintenance"})
	d.ok(ann, "DELETE", "/api/locks/"+lease, nil)
	d.ok(ann, "DELETE", "/api/locks?ticket=u", nil)
}

// A field or a code that is not described is found.
func TestUndescribedAnswersAreFound(t *testing.T) {
	for text, status := range map[string]int{
		`{"is_locked": false, "color": "red"}`:                                 200,
		`{"is_locked": "no"}`:                                                  200,
		`{"success": false, "error": "oops", "message": "x"}`:                  404,
		`{"success": false, "error": "not_allowed"}`:                           403,
		`{"success": true}`:                                                    201,
		`<html>`:                                                               200,
		`{"success": false, "error": "not_allowed", "message": 7}`:             500,
		`{"success": true, "error": "not_allowed", "message": "x"}`:            403,
		`{"success": false, "error": "already_locked", "message": "x", "x":1}`: 409,
	} {
		assert.Error(t, openAPI().check("GET", lockOf("d"), nil, answer{status: status, text: []byte(text)}), text)
	}
	assert.NoError(t, openAPI().check("GET", lockOf("d"), nil, answer{status: 200, text: []byte(`{"is_locked": false}`)}))
}

func TestDescriptionIsForEverybody(t *testing.T) {
	t.Parallel()
	s := startWithUsers(t, "")
	a := s.as(t, "").do("GET", "/api/openapi.json", nil)
	require.Equal(t, http.StatusOK, a.status)
	assert.Equal(t, "3.1.0", a.body["openapi"])
	assert.Empty(t, a.header.Values("Set-Cookie"))
	assert.True(t, json.Valid(a.text))
}
