package dav

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A name has one place and one document, and the other way round: no two URLs that differ in more than their escaping lead
// to one document.
func FuzzPlaces(f *testing.F) {
	for _, path := range []string{"", "a", "a/b", "My%20plan.odt", "a~b", "a~20b", "a~.b", "a/%2e%2e", "a//b", "%00", "a%2Fb", "x/~", "%e2%82%ac/%e2%82%ac", "a/b~20"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := parsePlace(Prefix + path)
		if err != nil || p.root() {
			return
		}
		again, err := parsePlace(p.href(false))
		require.NoError(t, err)
		assert.Equal(t, p, again)
		assert.NotContains(t, p, "..")
		document, ok := placeOfDocument(p.id())
		assert.True(t, ok)
		assert.Equal(t, p, document)
	})
}

// Every document that is listed can be opened by its URL.
func FuzzDocuments(f *testing.F) {
	for _, id := range []string{"a", "a~20b", "a~b", "a~7Eb", "a~.b", "a~.b~20c", "a~.~2E~2E", "~", "a~.~2F", "~.a"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, ok := placeOfDocument(id)
		if !ok {
			return
		}
		again, err := parsePlace(p.href(false))
		require.NoError(t, err, p.href(false))
		assert.Equal(t, id, again.id())
	})
}

func FuzzIf(f *testing.F) {
	f.Add(`</a> (<urn:uuid:1> ["tag"]) (Not <DAV:no-lock>)`)
	f.Add(`(["a]b"])`)
	f.Fuzz(func(t *testing.T, text string) {
		lists, err := parseIf(text)
		if err != nil {
			return
		}
		require.NotEmpty(t, lists)
		for _, l := range lists {
			require.NotEmpty(t, l.conditions)
			for _, c := range l.conditions {
				assert.NotEqual(t, c.token == "", c.tag == "")
				assert.Contains(t, strings.ToLower(text), strings.ToLower(c.token+c.tag))
			}
		}
	})
}
