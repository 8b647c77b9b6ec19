package httpapi

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/events"
)

// described lists the bodies that the server writes, by the names of their schemas in openapi.json. DocumentLock has two.
var described = []struct {
	schema string
	body   any
}{
	{"Done", done{}}, {"Error", failure{}}, {"Session", sessionReply{}}, {"Grant", grantReply{}}, {"LeaseGrant", leaseGrant{}},
	{"Renewal", renewal{}}, {"DocumentLock/oneOf/0", noLock{}}, {"DocumentLock/oneOf/1", documentLock{}},
	{"AlreadyLocked", alreadyLocked{}}, {"LeftBehind", leftBehind{}}, {"Refused", refusedReply{}}, {"Denied", deniedReply{}},
	{"Lease", leaseReply{}}, {"Waiter", waiterReply{}}, {"Listing", listing{}}, {"Saved", savedReply{}},
	{"Generation", generation{}}, {"History", historyReply{}}, {"Document", documentReply{}}, {"DocumentPage", documentPage{}},
	{"LockRequest", pathsBody{}}, {"Holder", lockBody{}}, {"Break", breakBody{}}, {"Event", events.Event{}},
}

// schema is the part of a schema that names fields.
type schema struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
	OneOf      []schema                   `json:"oneOf"`
}

// fields returns the names of a schema's fields.
func (s schema) fields() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// schemas returns the schemas of openapi.json by their names.
func schemas(t *testing.T) map[string]schema {
	t.Helper()
	var description struct {
		Components struct{ Schemas map[string]schema }
	}
	require.NoError(t, json.Unmarshal(Description, &description))
	all := description.Components.Schemas
	for i, one := range all["DocumentLock"].OneOf {
		all["DocumentLock/oneOf/"+string(rune('0'+i))] = one
	}
	return all
}

// jsonFields returns the JSON names of a struct's fields, and of those that every value has. Fields of an embedded pointer
// may be absent.
func jsonFields(of reflect.Type) (all, always []string) {
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || slices.Contains(all, name) {
			continue
		}
		all = append(all, name)
		if options != "omitempty" && !throughPointer(of, f.Index) {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}

func throughPointer(of reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if of = of.Field(i).Type; of.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// The structs of this package and openapi.json have the same fields. In a reply, the fields without omitempty are the
// required ones.
func TestBodiesHaveTheDescribedFields(t *testing.T) {
	all := schemas(t)
	for _, d := range described {
		s, ok := all[d.schema]
		require.True(t, ok, d.schema)
		fields, always := jsonFields(reflect.TypeOf(d.body))
		slices.Sort(s.Required)
		assert.Equal(t, s.fields(), fields, d.schema)
		if strings.HasSuffix(reflect.TypeOf(d.body).Name(), "Body") {
			continue // a request: the server checks which fields are there
		}
		assert.Equal(t, s.Required, always, "the required fields of "+d.schema)
	}
}

// Every struct of replies.go is compared, and no reply is an untyped map.
func TestEveryReplyIsCompared(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	compared := []string{"publicLease"} // a part of other replies
	for _, d := range described {
		compared = append(compared, reflect.TypeOf(d.body).Name())
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.MapType:
				value, _ := n.Value.(*ast.Ident)
				assert.False(t, value != nil && value.Name == "any", "%s has an untyped map", name)
			case *ast.TypeSpec:
				if name == "replies.go" {
					found++
					assert.Contains(t, compared, n.Name.Name)
				}
			}
			return true
		})
	}
	assert.Greater(t, found, 15)
}

// A field of an outer struct hides that of an embedded one, and the fields of an embedded pointer may be absent.
func TestJSONFields(t *testing.T) {
	type inner struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type outer struct {
		inner
		A int `json:"a"`
		C int `json:"c,omitempty"`
	}
	type pointing struct{ *inner }
	all, always := jsonFields(reflect.TypeFor[outer]())
	assert.Equal(t, []string{"a", "b", "c"}, all)
	assert.Equal(t, []string{"a", "b"}, always)
	all, always = jsonFields(reflect.TypeFor[pointing]())
	assert.Equal(t, []string{"a", "b"}, all)
	assert.Empty(t, always)
}
