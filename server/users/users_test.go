package users

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hashOf(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }

func TestKeys(t *testing.T) {
	keys, err := ParseKeys([]byte("# robots\n ci " + hashOf("k1") + " robots,editors # the build\n\nann%20lee " + hashOf("k2")))
	require.NoError(t, err)
	u, ok := keys.Of("k1")
	assert.True(t, ok)
	assert.Equal(t, User{"ci", []string{"robots", "editors"}}, u)
	u, ok = keys.Of("k2")
	assert.True(t, ok)
	assert.Equal(t, User{Name: "ann lee"}, u)
	for _, wrong := range []string{"", "k3", hashOf("k1")} {
		_, ok = keys.Of(wrong)
		assert.False(t, ok, wrong)
	}
	for text, want := range map[string]string{
		"ci": "line 1: a line must have", "\nci k1": "line 2: the hash of ci", "ci sha256:00": "64 hexadecimal digits", "%zz " + hashOf("k"): "not escaped correctly",
		"a " + hashOf("k") + "\nb " + hashOf("k"): "the key of b appears twice", "a " + hashOf("k") + " g, h": "a line must have",
	} {
		_, err := ParseKeys([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestHeadersCountOnlyFromTrustedProxies(t *testing.T) {
	s := Source{Header: "X-User", GroupsHeader: "X-Groups", Trusted: func(r *http.Request) bool { return r.RemoteAddr == "10.0.0.1:1" }}
	request := func(from string, headers ...string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		return r
	}
	id, err := s.Of(request("10.0.0.1:1", "X-User", " ann ", "X-Groups", "a, b,,"))
	require.NoError(t, err)
	assert.Equal(t, User{"ann", []string{"a", "b"}}, id.User)
	for _, headers := range [][]string{{"X-User", "ann"}, {"X-Groups", "admins"}} {
		_, err = s.Of(request("10.0.0.2:1", headers...))
		assert.ErrorIs(t, err, ErrHeader)
	}
	_, err = s.Of(request("10.0.0.1:1", "X-User", "ann", "X-User", "bob"))
	assert.ErrorIs(t, err, ErrHeader)
	id, err = s.Of(request("10.0.0.1:1", "X-Groups", "admins"))
	require.NoError(t, err)
	assert.Equal(t, Identity{}, id, "groups without a name are nobody's")
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("ci " + hashOf("k") + " a,b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := ParseKeys(text)
		assert.True(t, err == nil || keys == nil)
	})
}
