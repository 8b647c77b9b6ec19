package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// guest is a person with one socket at a time, who comes back after it has ended.
type guest struct {
	m     *meeting
	name  string
	dice  *dice
	rooms []string
	stays bool // at the end of the run

	mu       sync.Mutex
	conn     *websocket.Conn
	over     chan struct{} // closed when the socket has ended
	out      chan []byte   // to write; virtual time would wait for a mutex that is held meanwhile
	news     chan struct{} // receives after each message
	token    string
	room     string // the room that the guest has entered last, or asked to enter
	inside   bool   // a state of that room came since
	refused  string // the code of the last error
	revision int64  // of the last state
	last     heardMessage
	sent     []string // the answers of the guest, "" for a new participant's
	// floors has the index of the answer that the server has shown last, by the room and the number of a participant that this
	// guest was: an older one never comes back.
	floors map[string]int
	shown  string // the answer that the server has shown last
	calm   bool   // nothing may be refused any more
}

// live comes and goes until the run calms down.
func (p *guest) live() {
	for {
		if p.connect() {
			p.stay()
			p.leave(p.dice.chance(0.5))
		}
		if !p.m.pause(p.dice.between(10*time.Millisecond, 10*time.Second)) {
			return
		}
	}
}

// connect opens a socket, and reports whether the server has given it a token.
func (p *guest) connect() bool {
	at := p.m.any(p.dice)
	if at == nil {
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	transport := &http.Transport{DialContext: at.dial, DisableKeepAlives: true}
	conn, _, err := websocket.Dial(ctx, "http://rooms/ws", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, HTTPHeader: http.Header{"Session": {p.name}}})
	if err != nil {
		p.m.w.note(p.name, "cannot connect: %v", err)
		return false
	}
	_, data, err := conn.Read(ctx)
	first, failed := decodeMessage(data)
	if err != nil || failed != nil || first.Type != "connected" {
		p.m.w.note(p.name, "is not connected: %v %s", err, data)
		_ = conn.CloseNow()
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.over, p.news, p.out = conn, make(chan struct{}), make(chan struct{}, 1), make(chan []byte, 100)
	p.last, p.revision, p.inside, p.refused = heardMessage{}, 0, false, ""
	p.m.w.note(p.name, "has the token %s", first.UserToken[:4])
	go p.listen(conn, p.over)
	go write(conn, p.out, p.over)
	previous := p.token
	p.token = first.UserToken
	if p.room == "" || p.dice.chance(0.2) {
		p.room = pick(p.dice, p.rooms...)
	}
	if p.dice.chance(0.3) {
		previous = "" // its session and name are known
	}
	p.enter(p.room, previous)
	return true
}

// enter asks to enter a room, perhaps as a new participant. The caller holds p.mu.
func (p *guest) enter(room, previous string) {
	p.inside = p.inside && room == p.room
	p.room = room
	p.sent = append(p.sent, "")
	p.send(map[string]any{"type": "enterTheRoom", "roomId": room, "userName": p.name, "create": true, "previousToken": previous})
}

// send sends a message. The caller holds p.mu.
func (p *guest) send(message map[string]any) {
	message["userToken"] = p.token
	data, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	p.m.w.note(p.name, "sends %s", data)
	p.out <- data
}

// write writes messages until the socket ends.
func write(conn *websocket.Conn, out <-chan []byte, over <-chan struct{}) {
	for {
		select {
		case data := <-out:
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
			_ = conn.Write(ctx, websocket.MessageText, data)
			stop()
		case <-over:
			return
		}
	}
}

// stay does something from time to time, until it leaves or the socket ends.
func (p *guest) stay() {
	for range p.dice.n(12) {
		if !p.m.pause(p.dice.between(time.Millisecond, 5*time.Second)) || p.ended() {
			return
		}
		p.mu.Lock()
		switch refused := p.refused; {
		case refused != "":
			p.refused = ""
			p.enter(p.room, "") // it may have been removed
		case p.dice.chance(0.1):
			p.enter(pick(p.dice, p.rooms...), "")
		case p.dice.chance(0.2):
			p.answer("")
		default:
			p.answer(fmt.Sprint(p.name, "#", len(p.sent)))
		}
		p.mu.Unlock()
	}
}

// answer answers. The caller holds p.mu.
func (p *guest) answer(text string) {
	p.sent = append(p.sent, text)
	p.send(map[string]any{"type": "answer", "roomId": p.room, "answer": text})
}

func (p *guest) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.over:
		return true
	default:
		return p.conn == nil
	}
}

// leave ends the socket: it is closed, or the connection breaks.
func (p *guest) leave(closes bool) {
	p.mu.Lock()
	conn, over := p.conn, p.over
	p.conn = nil
	p.mu.Unlock()
	if conn == nil {
		return
	}
	p.m.w.note(p.name, "leaves; closes: %v", closes)
	if closes {
		_ = conn.Close(websocket.StatusGoingAway, "")
	}
	_ = conn.CloseNow()
	<-over
}

// listen reads messages until the socket ends.
func (p *guest) listen(conn *websocket.Conn, over chan struct{}) {
	defer close(over)
	for {
		_, data, err := conn.Read(context.Background())
		if err != nil {
			p.m.w.note(p.name, "reads no more: %v", err)
			return
		}
		h, err := decodeMessage(data)
		if err != nil {
			p.m.w.found("messages", "%s got %q: %v", p.name, data, err)
			return
		}
		p.m.w.count(h.Type)
		p.heard(h)
	}
}

func (p *guest) heard(h heardMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.m.w.verbose {
		p.m.w.note(p.name, "hears %+v", h)
	}
	switch h.Type {
	case "error":
		p.m.w.note(p.name, "is refused: %s", h.Error)
		if p.calm {
			p.m.w.found("calm", "%s is refused although nothing is wrong: %s", p.name, h.Error)
		}
		p.refused = h.Error
	case "roomInfo":
		p.state(h)
	}
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// state checks a state of a room. The caller holds p.mu.
func (p *guest) state(h heardMessage) {
	if h.Revision <= p.revision {
		p.m.w.found("order", "%s got revision %d after %d", p.name, h.Revision, p.revision)
	}
	p.revision, p.last = h.Revision, h
	all, mine := true, 0
	for _, g := range h.Room.Participants {
		all = all && (g.Answer != "" || g.HasAnswered)
		switch {
		case g.IsMe:
			mine++
			p.own(h, g)
		case g.Answer != "" && !h.Room.IsOpen:
			p.m.w.found("hidden", "%s sees the answer of %s in a room that is not open", p.name, g.Name)
		}
	}
	if mine != 1 {
		p.m.w.found("states", "%s is %d participants of %+v", p.name, mine, h)
	}
	if all != h.Room.IsOpen {
		p.m.w.found("open", "a room with %+v is open: %v", h.Room.Participants, h.Room.IsOpen)
	}
}

// own checks the answer of this guest in a state. The caller holds p.mu.
func (p *guest) own(h heardMessage, g heardGuest) {
	if g.Name != p.name {
		p.m.w.found("states", "%s is called %s", p.name, g.Name)
	}
	if h.Room.ID != p.room {
		return // it has asked to enter another room since
	}
	p.inside = true
	p.shown = g.Answer
	key := fmt.Sprint(h.Room.ID, " ", g.UserNumber)
	floor := p.floors[key]
	at := slices.Index(p.sent[floor:], g.Answer)
	if at < 0 {
		p.m.w.found("answers", "the answer of %s as %s is %q again, after %q", p.name, key, g.Answer, p.sent[floor:])
		return
	}
	p.floors[key] = floor + at
}

// settle enters a room and answers, again until the server shows that.
func (p *guest) settle() {
	limit := time.Now().Add(10 * time.Minute)
	for time.Now().Before(limit) {
		if p.connect() && p.answers() {
			return
		}
		p.leave(true)
		time.Sleep(time.Second)
	}
	p.m.w.found("settled", "%s cannot enter %s and answer", p.name, p.room)
}

// answers reports whether the server shows an answer on this socket.
func (p *guest) answers() bool {
	if !p.shows(func() bool { return p.inside }) {
		return false
	}
	p.mu.Lock()
	text := fmt.Sprint(p.name, "#last")
	p.answer(text)
	p.mu.Unlock()
	shown := p.shows(func() bool { return p.shown == text })
	p.mu.Lock()
	p.calm = shown
	p.mu.Unlock()
	return shown
}

// shows waits until a condition holds. It gives up when the socket ends, after a refusal, and after a minute.
func (p *guest) shows(holds func() bool) bool {
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		p.mu.Lock()
		ok, refused := holds(), p.refused != ""
		p.mu.Unlock()
		if ok || refused {
			return ok && !refused
		}
		select {
		case <-p.news:
		case <-p.over:
			return false
		case <-limit.C:
			return false
		}
	}
}

// seesAll checks that the last state of this guest has exactly the guests of its room, with their answers.
func (p *guest) seesAll(people []*guest) {
	if p.ended() {
		p.m.w.found("calm", "the socket of %s has ended although nothing is wrong", p.name)
	}
	var wanted, seen []string
	for _, other := range people {
		if other.stays && other.room == p.room {
			wanted = append(wanted, other.name+" "+other.name+"#last")
		}
	}
	for _, g := range p.last.Room.Participants {
		seen = append(seen, g.Name+" "+g.Answer)
	}
	slices.Sort(seen)
	slices.Sort(wanted)
	if !p.last.Room.IsOpen || !slices.Equal(seen, wanted) {
		p.m.w.found("participants", "%s sees %v in %s, open: %v, and wants %v", p.name, seen, p.room, p.last.Room.IsOpen, wanted)
	}
}
