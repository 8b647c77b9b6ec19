package rooms

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// For every order of operations, the room agrees with a plain list of participants and answers, and each
// participant's message agrees with both.
func TestRoomAgreesWithItsModel(t *testing.T) {
	type person struct {
		token, name, answer string
		number              int
	}
	rapid.Check(t, func(t *rapid.T) {
		r := room{ID: "r"}
		model := []person{}
		joined, issued := 0, 0
		issue := func() string { issued++; return fmt.Sprintf("token-%d", issued) }
		some := func(t *rapid.T) int {
			if len(model) == 0 {
				t.Skip("nobody is there")
			}
			return rapid.IntRange(0, len(model)-1).Draw(t, "who")
		}
		names := rapid.StringMatching(`[a-z"\\<é猫]{1,4}`)
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				p := person{token: issue(), name: names.Draw(t, "name"), number: joined}
				joined++
				model = append(model, p)
				r = must(r.enter(p.token, p.name, "s"))(t)
			},
			"enter again": func(t *rapid.T) {
				p := &model[some(t)]
				p.name = names.Draw(t, "name")
				r = must(r.enter(p.token, p.name, "s"))(t)
			},
			"answer": func(t *rapid.T) {
				p := &model[some(t)]
				p.answer = rapid.SampledFrom([]string{"", "x1", "x2"}).Draw(t, "answer")
				r = must(r.answer(p.token, p.answer))(t)
			},
			"clear all": func(t *rapid.T) {
				token := model[some(t)].token
				for i := range model {
					model[i].answer = ""
				}
				r = must(r.clearAll(token))(t)
			},
			"leave": func(t *rapid.T) {
				i := some(t)
				r = r.leave(model[i].token)
				model = slices.Delete(model, i, i+1)
			},
			"resume": func(t *rapid.T) {
				p := &model[some(t)]
				former := p.token
				p.token, p.name = issue(), names.Draw(t, "name")
				r = must(r.resume(former, p.token, p.name, "s"))(t)
			},
			"a stranger": func(t *rapid.T) {
				before := must(r.encode())(t)
				for _, try := range []func() (room, error){
					func() (room, error) { return r.answer("stranger", "x") },
					func() (room, error) { return r.clearAll("stranger") },
					func() (room, error) { return r.resume("stranger", issue(), "x", "") },
				} {
					_, err := try()
					require.ErrorIs(t, err, errNotInRoom)
				}
				r = r.leave("stranger")
				require.Equal(t, before, must(r.encode())(t))
			},
			"": func(t *rapid.T) {
				there := []person{}
				for _, p := range r.Participants {
					there = append(there, person{p.Token, p.Name, p.Answer, p.Number})
				}
				require.Equal(t, model, there)
				open := len(model) > 0 && !slices.ContainsFunc(model, func(p person) bool { return p.answer == "" })
				require.Equal(t, open, r.IsOpen)

				stored := must(r.encode())(t)
				again := must(decodeRoom(stored))(t)
				require.True(t, r.looksLike(again))

				view := newView(r, 7)
				for i, me := range model {
					told := hear(t, view, me.token)
					require.Equal(t, int64(7), told.Revision)
					require.Equal(t, open, told.Room.IsOpen)
					require.Len(t, told.Room.Participants, len(model))
					for j, p := range told.Room.Participants {
						require.Equal(t, i == j, p.IsMe)
						require.Equal(t, model[j].name, p.Name)
						require.Equal(t, model[j].number, p.Number)
						if open || i == j {
							require.Equal(t, model[j].answer, p.Answer)
							require.False(t, p.HidesAnswer)
						} else {
							require.Empty(t, p.Answer)
							require.Equal(t, model[j].answer != "", p.HidesAnswer)
						}
					}
				}
				_, ok := view.appendMessage(nil, "stranger")
				require.False(t, ok)
			},
		})
	})
}

// roomInfo is a client's view of a room.
type roomInfo struct {
	Type     string
	Revision int64
	Room     struct {
		ID           string
		IsOpen       bool
		Participants []told
	}
}

// told is a client's view of a participant.
type told struct {
	Name, Answer string
	HidesAnswer  bool `json:"hasAnswered"`
	Number       int  `json:"userNumber"`
	IsMe         bool
}

func (p told) answered() bool { return p.Answer != "" || p.HidesAnswer }

// hear decodes the message for a participant, and checks that it contains no token.
func hear(t require.TestingT, v *view, token string) roomInfo {
	data, ok := v.appendMessage(nil, token)
	require.True(t, ok)
	for _, p := range v.room.Participants {
		require.NotContains(t, string(data), p.Token)
	}
	var info roomInfo
	require.NoError(t, json.Unmarshal(data, &info), string(data))
	require.Equal(t, "roomInfo", info.Type)
	require.Equal(t, v.room.ID, info.Room.ID)
	return info
}

// must returns the value and requires that there is no error.
func must[T any](value T, err error) func(require.TestingT) T {
	return func(t require.TestingT) T {
		require.NoError(t, err)
		return value
	}
}

func TestARoomIsLimited(t *testing.T) {
	r := room{ID: "r"}
	for i := range maxParticipants {
		r = must(r.enter(fmt.Sprint(i), "Ann", ""))(t)
	}
	_, err := r.enter("one more", "Ben", "")
	assert.ErrorIs(t, err, errFull)
	_, err = r.enter("7", "Ann", "")
	assert.NoError(t, err, "a participant may enter again")

	for i := range r.Participants {
		r.Participants[i].Answer = strings.Repeat("猫", maxAnswer)
	}
	data, err := r.encode()
	assert.NoError(t, err, "%d bytes: a full room of long answers fits the store", len(data))
	for i := range r.Participants {
		r.Participants[i].Answer = strings.Repeat("\x01", maxAnswer)
	}
	_, err = r.encode()
	assert.ErrorIs(t, err, errFull)
}

func TestParticipantComesBack(t *testing.T) {
	r := room{ID: "r", Participants: []participant{
		{Token: "a", Name: "Ann", Session: "s1"}, {Token: "b", Name: "Ben", Session: "s1"},
		{Token: "c", Name: "Ann", Session: "s2"}, {Token: "d", Name: "Ann"}, {Token: "e", Name: "Ann", Session: "s1"},
	}}
	assert.Equal(t, []string{"a", "e"}, r.alike("s1", "Ann"))
	assert.Equal(t, []string{"b"}, r.alike("s1", "Ben"))
	assert.Empty(t, r.alike("s2", "Ben"))
	assert.Empty(t, r.alike("", "Ann"), "nobody comes back by a session that nobody knows")
}
