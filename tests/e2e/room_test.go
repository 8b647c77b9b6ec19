package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// roomTab opens the room page. The part after "#" in its address is the invitation.
func roomTab(t *testing.T, b *browser.Browser, s server, hash string) *browser.Tab {
	t.Helper()
	tab := b.Open(t, s.URL+"/room.html"+hash)
	lookAround(tab)
	tab.WaitFor("!$('enter').disabled", browser.Limit)
	return tab
}

func lookAround(tab *browser.Tab) {
	tab.MustEval(`
		globalThis.$ = id => document.getElementById(id)
		globalThis.title = () => $('answer-title').textContent
		globalThis.hands = () => [...$('people').children].map(li => li.dataset.name + ': ' + li.querySelector('.hand').textContent)
		globalThis.type = (id, text) => { $(id).value = text; $(id).dispatchEvent(new Event('input', {bubbles: true})) }
		globalThis.me = () => [...$('people').children].find(li => li.querySelector('.you'))?.dataset.name; null`, nil)
}

// enterAs enters the room of the tab's invitation, or a new one.
func enterAs(tab *browser.Tab, name string) {
	tab.MustEval(fmt.Sprintf("type('name', %q); $('enter').click(); null", name), nil)
	tab.WaitFor(fmt.Sprintf("me() === %q", name), browser.Limit)
}

func say(tab *browser.Tab, text string) {
	tab.MustEval(fmt.Sprintf("type('reply-text', %q); $('send').click(); null", text), nil)
}

// shows waits until a tab sees these answers.
func shows(tab *browser.Tab, hands ...string) {
	tab.WaitFor(fmt.Sprintf("hands().join('|') === %q", strings.Join(hands, "|")), browser.Limit)
}

func opensFromTheDemo(t *testing.T, chromium *browser.Browser, s server) {
	t.Helper()
	demo := chromium.Open(t, s.URL+"/")
	demo.MustEval("document.querySelector('.pages a[href=\"/room.html\"]').click(); null", nil)
	demo.WaitFor("location.pathname === '/room.html'", browser.Limit)
	demo.Close()
}

// Two profiles meet in a room, answer, and see each other's answer when both have answered. They leave, and
// the room is gone.
func TestRoom(t *testing.T) {
	t.Parallel()
	s := serve(t)
	browsers := profiles(t, 2)
	opensFromTheDemo(t, browsers[0], s)
	ann := roomTab(t, browsers[0], s, "")
	assert.Equal(t, "Start a room.", browser.Get[string](ann, "title()"))
	screenshots(t, map[string]*browser.Tab{"room-lobby": ann})
	enterAs(ann, "Ann")
	link := browser.Get[string](ann, "location.hash")
	assert.Greater(t, len(link), 30)
	shows(ann, "Ann: is thinking")

	ben := roomTab(t, browsers[1], s, link)
	assert.Equal(t, "You are invited.", browser.Get[string](ben, "title()"))
	enterAs(ben, "Ben")
	shows(ann, "Ann: is thinking", "Ben: is thinking")

	say(ann, "five")
	shows(ann, "Ann: fiveonly you see it", "Ben: is thinking")
	shows(ben, "Ann: has answered", "Ben: is thinking")
	assert.NotContains(t, browser.Get[string](ben, "document.documentElement.outerHTML"), "five")
	assert.Contains(t, browser.Get[string](ben, "document.title"), "1 of 2")
	screenshots(t, map[string]*browser.Tab{"room-hidden": ann, "room-turn": ben})

	say(ben, "<b>eight</b>")
	for _, tab := range []*browser.Tab{ann, ben} {
		shows(tab, "Ann: five", "Ben: <b>eight</b>")
		tab.WaitFor("title() === 'Yes. Here they are.'", browser.Limit)
	}
	ann.WaitFor("document.getAnimations().length === 0", browser.Limit)
	screenshots(t, map[string]*browser.Tab{"room-open": ann, "room-open-too": ben})
	ben.MustEval("$('new-round').click(); null", nil)
	shows(ann, "Ann: is thinking", "Ben: is thinking")
	say(ann, "six")
	shows(ben, "Ann: has answered", "Ben: is thinking")

	bothLeave(ann, ben, s.URL+"/room.html"+link)
	for _, tab := range []*browser.Tab{ann, ben} {
		tab.Quiet()
	}
}

// grace is a time for which a server keeps the places of pages that are away. Pages of a busy machine do not come back within the usual two
// seconds.
const grace = "1m"

// pair starts a server, and opens two tabs of one browser that are two participants in a room.
func pair(t *testing.T, first, second string) (s server, one, two *browser.Tab) {
	t.Helper()
	s = serve(t, "--room-grace", grace)
	b := profiles(t, 1)[0]
	one = roomTab(t, b, s, "")
	enterAs(one, first)
	two = roomTab(t, b, s, browser.Get[string](one, "location.hash"))
	enterAs(two, second)
	return s, one, two
}

// After a reload, the participant is the same: Ann keeps her answer, and Ben notices nothing.
func TestRoomAfterAReload(t *testing.T) {
	t.Parallel()
	_, ann, ben := pair(t, "Ann", "Ben")
	say(ann, "five")
	shows(ben, "Ann: has answered", "Ben: is thinking")
	ben.MustEval("globalThis.changes = 0; new MutationObserver(() => changes++).observe($('people'), {childList: true}); null", nil)
	ann.Reload()
	lookAround(ann)
	shows(ann, "Ann: fiveonly you see it", "Ben: is thinking")
	assert.Equal(t, "Ann", browser.Get[string](ann, "me()"))
	assert.Zero(t, browser.Get[int](ben, "changes"))
	ann.Quiet()
	ben.Quiet()
}

// waitUntilGone asks the server for a room until it is gone: its participants keep their places for two seconds.
const waitUntilGone = `await new Promise(done => {
	const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws')
	const ask = () => socket.send(JSON.stringify({type: 'isExistTheRoom', roomId: '%s'}))
	socket.onopen = ask
	socket.onmessage = ({data}) => {
		const {type, isExistTheRoom} = JSON.parse(data)
		if (type !== 'isExistTheRoomResult') return
		if (isExistTheRoom) setTimeout(ask, 50)
		else done(socket.close())
	}
})`

// bothLeave has Ben leave, so that all remaining participants have answered, and then Ann. The room is gone.
func bothLeave(ann, ben *browser.Tab, room string) {
	ben.MustEval("$('leave').click(); null", nil)
	shows(ann, "Ann: six")
	ben.WaitFor("title() === 'Start a room.' && !$('enter').disabled", browser.Limit)
	ann.MustEval("$('leave').click(); null", nil)
	ben.MustEval(fmt.Sprintf(waitUntilGone, room[strings.Index(room, "#")+1:]), nil)
	ben.Navigate(room)
	ben.Reload()
	lookAround(ben)
	ben.WaitFor("!$('enter').disabled", browser.Limit)
	ben.MustEval("type('name', 'Ben'); $('enter').click(); null", nil)
	ben.WaitFor("title() === 'This room is gone.' && $('enter').textContent === 'Create a room'", browser.Limit)
}

// Two tabs of one browser are two participants. When their server stops or dies, both pages reconnect on their own to
// their seats and answers.
func TestRoomOverARestart(t *testing.T) {
	t.Parallel()
	s, one, two := pair(t, "One", "Two")
	address := s.Address()
	for round, end := range []func(){s.Stop, s.Kill} {
		say(one, fmt.Sprint("x", round))
		shows(two, "One: has answered", "Two: is thinking")
		end()
		two.WaitFor("title() === 'Connection lost.'", browser.Limit)
		s.Start(address)
		two.WaitFor("title() !== 'Connection lost.'", browser.Limit)
		say(two, fmt.Sprint("y", round))
		for _, tab := range []*browser.Tab{one, two} {
			shows(tab, fmt.Sprint("One: x", round), fmt.Sprint("Two: y", round))
		}
		two.MustEval("$('new-round').click(); null", nil)
		shows(one, "One: is thinking", "Two: is thinking")
	}
	for _, tab := range []*browser.Tab{one, two} {
		tab.Quiet("WebSocket connection to") // the browser reports this while the server is unreachable
	}
}

// On a phone no content is outside the screen, however long the names and answers are.
func TestRoomFitsPhone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	tab := roomTab(t, profiles(t, 1)[0], s, "")
	tab.Resize(360, 740)
	fits := func(what string) {
		t.Helper()
		assert.LessOrEqual(t, browser.Get[int](tab, "document.documentElement.scrollWidth - innerWidth"), 0, what)
	}
	fits("the lobby")
	enterAs(tab, strings.Repeat("W", 24))
	fits("a long name")
	say(tab, strings.Repeat("m", 256))
	tab.WaitFor("title() === 'Yes. Here they are.'", browser.Limit)
	fits("a long answer")
	tab.Quiet()
}

// The server stops before it has taken an answer. The field still has the answer, so the user can send it again.
func TestRoomKeepsAnswerUntilServerHasIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ann := roomTab(t, browser.Start(t, quick), s, "")
	enterAs(ann, "Ann")
	s.Signal(syscall.SIGSTOP)
	say(ann, "typed")
	s.Kill()
	s.Start(s.Address())
	ann.WaitFor("!$('send').disabled && title() === 'Not yet. Your turn.'", browser.Limit)
	assert.Equal(t, "typed", browser.Get[string](ann, "$('reply-text').value"))
	ann.MustEval("$('send').click(); null", nil)
	shows(ann, "Ann: typed")
	assert.Empty(t, browser.Get[string](ann, "$('reply-text').value"))
}
