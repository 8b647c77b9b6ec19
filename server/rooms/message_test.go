package rooms

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	mine   = "0123456789abcdef0123456789abcdef"
	theirs = "fedcba9876543210fedcba9876543210"
)

// messages has texts of clients. The code is that of the refusal, or empty.
var messages = []struct{ what, text, code string }{
	{"a room", `{"type":"createRoom","userToken":"` + mine + `","userName":"Ann"}`, ""},
	{"a name of one character", `{"type":"createRoom","userToken":"` + mine + `","userName":"猫"}`, ""},
	{"a name of 24 characters", `{"type":"createRoom","userToken":"` + mine + `","userName":"` + strings.Repeat("猫", 24) + `"}`, ""},
	{"a name of 25", `{"type":"createRoom","userToken":"` + mine + `","userName":"` + strings.Repeat("a", 25) + `"}`, "invalid_request"},
	{"an empty name", `{"type":"createRoom","userToken":"` + mine + `","userName":""}`, "invalid_request"},
	{"no name", `{"type":"createRoom","userToken":"` + mine + `"}`, "invalid_request"},
	{"a name of spaces", `{"type":"createRoom","userToken":"` + mine + `","userName":"  "}`, "invalid_request"},
	{"a name with a line break", `{"type":"createRoom","userToken":"` + mine + `","userName":"a\nb"}`, "invalid_request"},
	{"a name that is a number", `{"type":"createRoom","userToken":"` + mine + `","userName":5}`, "invalid_request"},
	{"no token", `{"type":"createRoom","userName":"Ann"}`, "invalid_request"},
	{"another's token", `{"type":"createRoom","userToken":"` + theirs + `","userName":"Ann"}`, "foreign_token"},
	{"another's token, second", `{"type":"createRoom","userToken":"` + mine + `","userName":"Ann","USERTOKEN":"` + theirs + `"}`, "foreign_token"},
	{"asking", `{"type":"isExistTheRoom","roomId":"r"}`, ""},
	{"asking for nothing", `{"type":"isExistTheRoom"}`, "invalid_request"},
	{"asking for another key", `{"type":"isExistTheRoom","roomId":"../x"}`, "invalid_request"},
	{"asking for too long an id", `{"type":"isExistTheRoom","roomId":"` + strings.Repeat("a", 129) + `"}`, "invalid_request"},
	{"entering", `{"type":"enterTheRoom","userToken":"` + mine + `","userName":"Ann","roomId":"r"}`, ""},
	{"coming back", `{"type":"enterTheRoom","userToken":"` + mine + `","userName":"Ann","roomId":"r","previousToken":"` + theirs + `"}`, ""},
	{"coming back as nonsense", `{"type":"enterTheRoom","userToken":"` + mine + `","userName":"Ann","roomId":"r","previousToken":"a/b"}`, "invalid_request"},
	{"entering nowhere", `{"type":"enterTheRoom","userToken":"` + mine + `","userName":"Ann"}`, "invalid_request"},
	{"entering as another", `{"type":"enterTheRoom","userToken":"` + theirs + `","userName":"Ann","roomId":"r"}`, "foreign_token"},
	{"answering", `{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":"yes"}`, ""},
	{"answering nothing", `{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":""}`, ""},
	{"answering 256 characters", `{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":"` + strings.Repeat(`\ud83d\ude00`, 256) + `"}`, ""},
	{"answering 257", `{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":"` + strings.Repeat("a", 257) + `"}`, "invalid_request"},
	{"no answer", `{"type":"answer","userToken":"` + mine + `","roomId":"r"}`, "invalid_request"},
	{"a null answer", `{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":null}`, "invalid_request"},
	{"answering as another", `{"type":"answer","userToken":"` + theirs + `","roomId":"r","answer":"x"}`, "foreign_token"},
	{"clearing", `{"type":"clearAnswer","userToken":"` + mine + `","roomId":"r"}`, ""},
	{"clearing as another", `{"type":"clearAnswer","userToken":"` + theirs + `","roomId":"r"}`, "foreign_token"},
	{"clearing nowhere", `{"type":"clearAnswer","userToken":"` + mine + `"}`, "invalid_request"},
	{"fields of a later version", `{"type":"isExistTheRoom","roomId":"r","colour":{"a":[1]}}`, ""},
	{"a message that only the server sends", `{"type":"roomInfo"}`, "unknown_type"},
	{"an unknown type", `{"type":"dance"}`, "unknown_type"},
	{"no type", `{"roomId":"r"}`, "invalid_request"},
	{"a type that is a list", `{"type":["createRoom"]}`, "invalid_request"},
	{"a list", `[]`, "invalid_request"},
	{"null", `null`, "invalid_request"},
	{"nothing", ``, "invalid_request"},
	{"half an object", `{"type":"createRoom"`, "invalid_request"},
	{"two objects", `{"type":"isExistTheRoom","roomId":"r"}{}`, "invalid_request"},
	{"bad UTF-8", "{\"type\":\"isExistTheRoom\",\"roomId\":\"r\xff\"}", "invalid_request"},
	{"too much", `{"type":"isExistTheRoom","roomId":"r","x":"` + strings.Repeat("a", maxMessage) + `"}`, "message_too_large"},
}

func TestDecode(t *testing.T) {
	for _, row := range messages {
		m, refused := decode([]byte(row.text), mine)
		if row.code == "" {
			assert.Nil(t, refused, row.what)
			assert.Contains(t, row.text, m.Type, row.what)
			continue
		}
		if assert.NotNil(t, refused, row.what) {
			assert.Equal(t, row.code, refused.code, "%s: %s", row.what, refused.message)
		}
	}
}

func TestErrorDoesNotContainTheToken(t *testing.T) {
	_, refused := decode([]byte(`{"type":"answer","userToken":"`+theirs+`"}`), mine)
	require.NotNil(t, refused)
	assert.JSONEq(t, `{"type":"error","error":"foreign_token","message":"The userToken is not the one this socket was given."}`,
		string(refused.encoded()))
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token := newToken()
		assert.True(t, validToken(token), token)
		assert.False(t, seen[token])
		seen[token] = true
	}
}

// For every input, decode returns a refusal with a code or a message whose fields are all within their limits.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"type":"createRoom","userToken":"` + mine + `","userName":"Ann"}`,
		`{"type":"isExistTheRoom","roomId":"r"}`,
		`{"type":"enterTheRoom","userToken":"` + mine + `","userName":"Ann","roomId":"r","previousToken":"` + theirs + `"}`,
		`{"type":"answer","userToken":"` + mine + `","roomId":"r","answer":"\ud83d\ude00"}`,
		`{"type":"clearAnswer","userToken":"` + mine + `","roomId":"r","everyone":true}`,
		`{"type":"answer","answer":null}`, `[]`, `ping`, `{`, "\xff", `{"type":"answer","answer":{"answer":"x"}}`,
		`{"TYPE":"createRoom","userName":"Ann","userName":"Ben"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, refused := decode(bytes.Clone(data), mine)
		if refused != nil {
			require.NotEmpty(t, refused.code)
			require.True(t, json.Valid(refused.encoded()))
			return
		}
		if m.Type != typeExists {
			require.Equal(t, mine, m.Token)
		}
		if m.Type == typeCreate || m.Type == typeEnter {
			require.LessOrEqual(t, utf8.RuneCountInString(m.Name), maxName)
			require.NotEmpty(t, m.Name)
		}
		if m.Type != typeCreate {
			require.Regexp(t, roomID, m.RoomID)
			require.NotContains(t, m.RoomID, "/", "an id is one part of a key")
		}
		if m.Type == typeAnswer {
			require.LessOrEqual(t, utf8.RuneCountInString(m.Answer.value), maxAnswer)
			require.True(t, utf8.ValidString(m.Answer.value))
		}
	})
}
