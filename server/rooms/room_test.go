package rooms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type person struct {
	token, name, answer string
	number              int
}

// roomModel is a room beside a plain list of participants and answers.
type roomModel struct {
	r              room
	people         []person
	joined, issued int
}

var somebodysName = rapid.StringMatching(`[a-z"\\<é猫]{1,4}`)

func (m *roomModel) issue() string { m.issued++; return fmt.Sprintf("token-%d", m.issued) }

// some returns the index of a participant.
func (m *roomModel) some(t *rapid.T) int {
	if len(m.people) == 0 {
		t.Skip("nobody is there")
	}
	return rapid.IntRange(0, len(m.people)-1).Draw(t, "who")
}

// For every order of operations, the room agrees with a plain list of participants and answers, and each
// participant's message agrees with both.
func TestRoomAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &roomModel{r: room{ID: "r"}, people: []person{}}
		t.Repeat(map[string]func(*rapid.T){
			"enter":       m.enter,
			"enter again": m.enterAgain,
			"answer":      m.answer,
			"clear all":   m.clearAll,
			"leave":       m.leave,
			"resume":      m.resume,
			"not inside":  m.refuseOutsider,
			"":            m.check,
		})
	})
}

func (m *roomModel) enter(t *rapid.T) {
	p := person{token: m.issue(), name: somebodysName.Draw(t, "name"), number: m.joined}
	m.joined++
	m.people = append(m.people, p)
	m.r = must(m.r.enter(p.token, p.name, "s"))(t)
}

func (m *roomModel) enterAgain(t *rapid.T) {
	p := &m.people[m.some(t)]
	p.name = somebodysName.Draw(t, "name")
	m.r = must(m.r.enter(p.token, p.name, "s"))(t)
}

func (m *roomModel) answer(t *rapid.T) {
	p := &m.people[m.some(t)]
	p.answer = rapid.SampledFrom([]string{"", "x1", "x2"}).Draw(t, "answer")
	m.r = must(m.r.answer(p.token, p.answer))(t)
}

func (m *roomModel) clearAll(t *rapid.T) {
	token := m.people[m.some(t)].token
	for i := range m.people {
		m.people[i].answer = ""
	}
	m.r = must(m.r.clearAll(token))(t)
}

func (m *roomModel) leave(t *rapid.T) {
	i := m.some(t)
	m.r = m.r.leave(m.people[i].token)
	m.people = slices.Delete(m.people, i, i+1)
}

func (m *roomModel) resume(t *rapid.T) {
	p := &m.people[m.some(t)]
	former := p.token
	p.token, p.name = m.issue(), somebodysName.Draw(t, "name")
	m.r = must(m.r.resume(former, p.token, p.name, "s"))(t)
}

func (m *roomModel) refuseOutsider(t *rapid.T) {
	before := must(m.r.encode())(t)
	for _, try := range []func() (room, error){
		func() (room, error) { return m.r.answer("outsider", "x") },
		func() (room, error) { return m.r.clearAll("outsider") },
		func() (room, error) { return m.r.resume("outsider", m.issue(), "x", "") },
	} {
		_, err := try()
		require.ErrorIs(t, err, errNotInRoom)
	}
	m.r = m.r.leave("outsider")
	require.Equal(t, before, must(m.r.encode())(t))
}

func (m *roomModel) check(t *rapid.T) {
	there := []person{}
	for _, p := range m.r.Participants {
		there = append(there, person{p.Token, p.Name, p.Answer, p.Number})
	}
	require.Equal(t, m.people, there)
	open := len(m.people) > 0 && !slices.ContainsFunc(m.people, func(p person) bool { return p.answer == "" })
	require.Equal(t, open, m.r.IsOpen)

	stored := must(m.r.encode())(t)
	again := must(decodeRoom(stored))(t)
	require.True(t, m.r.looksLike(again))

	view := newView(m.r, 7)
	for i, me := range m.people {
		m.checkMessage(t, hear(t, view, me.token), i)
	}
	_, ok := view.message("outsider")
	require.False(t, ok)
}

// checkMessage checks the message to the i-th participant.
func (m *roomModel) checkMessage(t *rapid.T, told roomInfo, i int) {
	open := m.r.IsOpen
	require.Equal(t, int64(7), told.Revision)
	require.Equal(t, open, told.Room.IsOpen)
	require.Len(t, told.Room.Participants, len(m.people))
	for j, p := range told.Room.Participants {
		require.Equal(t, i == j, p.IsMe)
		require.Equal(t, m.people[j].name, p.Name)
		require.Equal(t, m.people[j].number, p.Number)
		if open || i == j {
			require.Equal(t, m.people[j].answer, p.Answer)
			require.False(t, p.HidesAnswer)
		} else {
			require.Empty(t, p.Answer)
			require.Equal(t, m.people[j].answer != "", p.HidesAnswer)
		}
	}
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
	parts, ok := v.message(token)
	require.True(t, ok)
	data := bytes.Join(parts[:], nil)
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
