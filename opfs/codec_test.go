package opfs

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/lock"
)

// full is a table with everything that a table can contain.
func full() *table {
	at := time.UnixMilli(1763687000100)
	return &table{
		token:    42,
		recovery: &recovery{until: at, seen: []string{"c1", "c 2"}},
		queue: []*entry{
			{id: "1", client: "c1", state: granted, wants: []lock.Want{{Name: "project/.lock", Mode: lock.Exclusive}},
				lease: &lease{ttl: 30 * time.Second, Record: lock.Record{Resource: "project/.lock", LeaseID: "l", OwnerID: "o",
					OwnerName: "Ünï \"\n\x00\u2028\xff", Token: 42, AcquiredAt: at, ExpiresAt: at.Add(30 * time.Second)}}},
			{id: "2", client: "c 2", state: waiting, asked: 1763687000100123, wants: []lock.Want{{Name: "", Mode: lock.Shared}, {Name: "a b/..\\", Mode: lock.Exclusive}}},
			{id: "3", client: "c1", state: recorded, lease: &lease{Record: lock.Record{Resource: "r", AcquiredAt: at, ExpiresAt: at}}},
		},
	}
}

func TestTableText(t *testing.T) {
	for _, want := range []*table{{}, full()} {
		got, err := decode(want.encode())
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// Builds differ in the characters that they escape: strconv's depends on the Unicode tables of its version, and the published Wasm has a
// stand-in for it. Tabs with different builds share the file.
func TestTableTextOfBuildWithOtherEscapes(t *testing.T) {
	const name = "Zoë\u00a0\u200d\u2028\U0001f469\n\x7f"
	want := &table{token: 1, queue: []*entry{{id: "1", client: name, state: present}}}
	for _, quoted := range []string{`"Zoë\u00a0\u200d\u2028👩\n\x7f"`, strconv.QuoteToASCII(name), "\"Zoë\u00a0\u200d\u2028\U0001f469\\x0a\\x7f\""} {
		got, err := decode([]byte("token 1\nentry present \"1\" " + quoted + " 0\n"))
		require.NoError(t, err, quoted)
		assert.Equal(t, want, got)
	}
}

func TestTableTextIsStrict(t *testing.T) {
	text := string(full().encode())
	for size := range len(text) {
		if got, err := decode([]byte(text[:size])); err == nil {
			assert.Equal(t, text[:size], string(got.encode()))
		}
	}
	for _, wrong := range []string{"", "token", "token x\n", "token 1", "token  1\n", "token 01\n", "token 1\ntoken 1\n", "token 1\n\n",
		"want shared \"x\"\n", "token 1\nwant shared \"x\"\n", "token 1\nentry asleep \"a\" \"b\" 0\n", "token 1\nentry granted \"a\" 0\n",
		"token 1\nentry granted \"a\" \"b\" \"c\" 0\n", "token 1\nentry granted \"a\" \"b\"\n", "token 1\nentry granted \"a\" \"b\" x\n",
		"token 1\nentry granted `\"` \"b\" 0\n", "token 1\nentry granted \"a\" \"b\" 0\nwant some \"x\"\n", `{"holders":[]}`} {
		_, err := decode([]byte(wrong))
		assert.Error(t, err, "%q", wrong)
	}
}
