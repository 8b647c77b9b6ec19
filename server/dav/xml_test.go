package dav

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, inside string) (*element, error) {
	t.Helper()
	body := `<D:propertyupdate xmlns:D="DAV:">` + inside + `</D:propertyupdate>`
	return parseXML([]byte(body), "propertyupdate")
}

// A property that one program stores is part of the answers to others. XML that is not well-formed would spoil the listing of a collection
// for everybody, and the decoder of the standard library reads some of it.
func TestXMLThatOthersCannotReadIsRefused(t *testing.T) {
	for _, inside := range []string{
		`<x a="1" a="2"/>`, `<x xmlns:p="n" xmlns:q="n" p:a="1" q:a="2"/>`, `<x xmlns:p="n" xmlns:p="m"/>`, `<x xmlns="n" xmlns="m"/>`,
		`<x: xmlns:x="n"/>`, `<:x/>`, `<x a:="1"/>`, `<x :a="1"/>`, `<x:y:z xmlns:x="n"/>`, `<x xmlns:p="n" p:a:b="1"/>`,
		`<xml:x/>`, `<x xmlns="http://www.w3.org/XML/1998/namespace"/>`, `<x xmlns:p="http://www.w3.org/2000/xmlns/" p:a="1"/>`,
	} {
		_, err := read(t, inside)
		assert.ErrorIs(t, err, errXML, inside)
	}
}

// Each prefix of an element's attributes is declared once, however many there are.
func TestManyAttributes(t *testing.T) {
	var attributes string
	for i := range 60 {
		attributes += fmt.Sprintf(` xmlns:p%d="n%d" p%d:a="%d"`, i, i, i, i)
	}
	e, err := read(t, `<x`+attributes+`/>`)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, prefix := range regexp.MustCompile(`xmlns:\w+=`).FindAllString(inner(*e), -1) {
		assert.False(t, seen[prefix], prefix)
		seen[prefix] = true
	}
	assert.Len(t, seen, 60)
}

// The XML that the server writes declares the namespace of each element. A long namespace that a short body uses many times would fill the
// memory.
func TestALongNamespaceIsNotRepeatedWithoutBound(t *testing.T) {
	body := `<x xmlns:p="` + strings.Repeat("n", 20<<10) + `">%s</x>`
	few, err := read(t, fmt.Sprintf(body, strings.Repeat(`<p:b/>`, 10)))
	require.NoError(t, err)
	assert.Less(t, len(inner(*few)), maxExpanded)
	for _, many := range []string{strings.Repeat(`<p:b/>`, 1000), strings.Repeat(`<b p:a=""/>`, 1000)} {
		_, err = read(t, fmt.Sprintf(body, many))
		assert.ErrorIs(t, err, errXML)
	}
}
