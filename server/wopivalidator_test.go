package server_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// element is an element of the published test cases.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all returns the children of the child with this name.
func (e element) all(name string) []element {
	for _, c := range e.Children {
		if c.XMLName.Local == name {
			return c.Children
		}
	}
	return nil
}

// validator runs the published test cases as the validator does: a request without validators must succeed.
type validator struct {
	client
	state map[string]string
}

const validatedFile = "/wopi/files/plan.wopitest"

// send sends the request of an element.
func (v validator) send(e element) answer {
	c := v.client
	for _, mutator := range e.all("Mutators") {
		if mutator.attr("Mutation") == "INVALID" {
			c.secret = "INVALID"
		}
	}
	lock := e.attr("Lock") + e.attr("NewLock")
	if lock != "" {
		c = c.with("X-WOPI-Lock", lock)
	}
	switch name := e.XMLName.Local; name {
	case "CheckFileInfo":
		return c.do("GET", validatedFile, nil)
	case "GetFile":
		return c.do("GET", validatedFile+"/contents", nil)
	case "PutFile":
		return c.with("X-WOPI-Override", "PUT").do("POST", validatedFile+"/contents", resource(e.attr("ResourceId")))
	case "Lock", "Unlock":
		return c.with("X-WOPI-Override", strings.ToUpper(name)).do("POST", validatedFile, nil)
	case "RefreshLock":
		return c.with("X-WOPI-Override", "REFRESH_LOCK").do("POST", validatedFile, nil)
	case "GetLock":
		return c.with("X-WOPI-Override", "GET_LOCK").do("POST", validatedFile, nil)
	case "UnlockAndRelock":
		return c.with("X-WOPI-Override", "LOCK").with("X-WOPI-OldLock", e.attr("OldLock")).do("POST", validatedFile, nil)
	}
	require.Fail(v.t, "an unknown request", e.XMLName.Local)
	return answer{}
}

// resource is the content that stands for a file of the validator.
func resource(id string) string {
	if id == "ZeroByteFile" {
		return ""
	}
	return "the file " + id
}

// run sends the requests and checks the answers.
func (v validator) run(requests []element) {
	v.t.Helper()
	for i, e := range requests {
		a := v.send(e)
		where := fmt.Sprintf("request %d, %s: %d %s", i+1, e.XMLName.Local, a.status, a.text)
		for _, s := range e.all("SaveState") {
			v.state[s.attr("Name")] = a.header.Get(s.attr("Source"))
			if s.attr("SourceType") != "Header" {
				v.state[s.attr("Name")], _ = a.body[s.attr("Source")].(string)
			}
			assert.NotEmpty(v.t, v.state[s.attr("Name")], where)
		}
		success := true
		for _, check := range e.all("Validators") {
			assert.NoError(v.t, v.check(a, check), where)
			if name := check.XMLName.Local; name == "ResponseCodeValidator" || name == "LockMismatchValidator" || name == "Or" {
				success = false
			}
		}
		if success {
			assert.Equal(v.t, http.StatusOK, a.status, where)
		}
	}
}

// check checks an answer by one validator.
func (v validator) check(a answer, check element) error {
	expected := check.attr("ExpectedValue")
	if key := check.attr("ExpectedStateKey"); key != "" {
		expected = v.state[key]
	}
	switch name := check.XMLName.Local; name {
	case "Or":
		var err error
		for _, one := range check.Children {
			if err = v.check(a, one); err == nil {
				return nil
			}
		}
		return err
	case "ResponseCodeValidator":
		return equal(fmt.Sprint(a.status), check.attr("ExpectedCode"))
	case "LockMismatchValidator":
		if len(a.header.Values("X-WOPI-Lock")) != 1 {
			return fmt.Errorf("the locks are %q", a.header.Values("X-WOPI-Lock"))
		}
		return equal(fmt.Sprint(a.status, a.header.Get("X-WOPI-Lock")), fmt.Sprint(http.StatusConflict, check.attr("ExpectedLock")))
	case "ResponseHeaderValidator":
		got := a.header.Get(check.attr("Header"))
		switch {
		case len(a.header.Values(check.attr("Header"))) != 1:
			return fmt.Errorf("%s is not there once", check.attr("Header"))
		case check.attr("ShouldMatch") == "false" && got == expected:
			return fmt.Errorf("%s is %q", check.attr("Header"), got)
		case check.attr("ShouldMatch") != "false" && (expected != "" || check.attr("ShouldMatch") == "true"):
			return equal(got, expected)
		}
		return nil
	case "ResponseContentValidator":
		return equal(string(a.text), resource(check.attr("ExpectedResourceId")))
	case "JsonSchemaValidator":
		return required(a, "BaseFileName", "OwnerId", "Size", "UserId", "Version")
	case "JsonResponseContentValidator":
		return properties(a, check.Children, v.state)
	default:
		return fmt.Errorf("an unknown validator: %s", name)
	}
}

func properties(a answer, checks []element, state map[string]string) error {
	for _, p := range checks {
		name, expected := p.attr("Name"), p.attr("ExpectedValue")
		if key := p.attr("ExpectedStateKey"); key != "" {
			expected = state[key]
		}
		if p.attr("IsRequired") == "true" || expected != "" {
			if err := required(a, name); err != nil {
				return err
			}
		}
		got := fmt.Sprint(a.body[name])
		if expected != "" && got != expected || !strings.HasSuffix(got, p.attr("EndsWith")) {
			return fmt.Errorf("%s is %s", name, got)
		}
	}
	return nil
}

func required(a answer, names ...string) error {
	for _, name := range names {
		if _, ok := a.body[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	return nil
}

func equal(got, expected string) error {
	if got != expected {
		return fmt.Errorf("%q instead of %q", got, expected)
	}
	return nil
}

// The published cases of the protocol's validator, unchanged, see testdata/wopi-validator.xml.
func TestWOPILocksByThePublishedCases(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "wopi-validator.xml"))
	require.NoError(t, err)
	var cases element
	require.NoError(t, xml.Unmarshal(text, &cases))
	before := map[string][]element{}
	for _, c := range cases.all("PrereqCases") {
		before[c.attr("Name")] = c.all("Requests")
	}
	s := startWithUsers(t, "user:ann * read lock write")
	s.as(t, "ann-key").status(http.StatusCreated, "PUT /dav/plan.wopitest text")
	ran := 0
	for _, group := range cases.Children {
		for _, c := range group.all("TestCases") {
			ran++
			t.Run(group.attr("Name")+"/"+c.attr("Name"), func(t *testing.T) {
				v := validator{s.as(t, "ann-key"), map[string]string{}}
				for _, condition := range group.all("PrereqTests") {
					require.Contains(t, before, condition.Text)
					v.run(before[condition.Text])
				}
				v.run(c.all("Requests"))
				for _, e := range c.all("CleanupRequests") {
					v.send(e)
				}
				if id := v.send(element{XMLName: xml.Name{Local: "GetLock"}}).header.Get("X-WOPI-Lock"); id != "" { // some cases leave the lock
					v.send(element{XMLName: xml.Name{Local: "Unlock"}, Attrs: []xml.Attr{{Name: xml.Name{Local: "Lock"}, Value: id}}})
				}
			})
		}
	}
	assert.Equal(t, 28, ran)
}
