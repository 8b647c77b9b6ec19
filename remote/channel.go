package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/autosave"
	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/lock"
)

// Channel is the [autosave.Channel] of a document: it carries messages between the tabs of this browser, and requests
// for the lock to a holder on another machine.
//
// The page's own waiting request carries its question to the server, see [questions]. A page that edits listens to the
// events of the document for as long as its lease lasts.
type Channel struct {
	document *Document
	id, path string // of the document
	local    autosave.Channel

	mu     sync.Mutex
	handle func(autosave.Message)
	life   context.Context
	asking map[string]pageQuestion    // by the round of the page that asks
	asked  map[string]*serverQuestion // by the round of a question from the server
}

// pageQuestion is a question of this page to the server.
type pageQuestion struct {
	number int // of the question in its round
	stop   context.CancelFunc
}

// serverQuestion is an open question from the server.
type serverQuestion struct {
	*attendance
	ended chan struct{} // closed when it is no longer open
}

// attendance is the state while a page holds the lock.
type attendance struct {
	*term
	answers chan pageAnswer // of the page, in order
}

// pageAnswer is an answer of the page to a question from the server.
type pageAnswer struct {
	autosave.Message
	at    time.Time
	ended <-chan struct{} // of the question
}

// offerLimit is how long the page's offer is valid. It is below the time after which the page edits again.
const offerLimit = 9 * time.Second

// answersKept is how many answers may wait to be sent; a page has few.
const answersKept = 16

// NewChannel returns the channel of the project's document. local reaches the tabs of this browser.
func NewChannel(d *Document, local autosave.Channel) *Channel {
	return &Channel{document: d, id: d.c.Document, path: d.path, local: local,
		asking: make(map[string]pageQuestion), asked: make(map[string]*serverQuestion)}
}

// At makes the channel serve the document at a path below the project, see [Contents.At].
func (c *Channel) At(path []string) (*Channel, error) {
	id, err := c.document.ID(path)
	c.id, c.path = id, documentPath(id)
	return c, err
}

// fromServer is the prefix of the rounds of questions that the server has passed on.
const fromServer = "server:"

// Listen implements [autosave.Channel]. stop ends everything in progress.
func (c *Channel) Listen(handle func(autosave.Message)) (stop func(), err error) {
	deafen, err := c.local.Listen(handle)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	c.mu.Lock()
	c.handle, c.life = handle, life
	c.mu.Unlock()
	return func() { end(); deafen() }, nil
}

// Post implements [autosave.Channel].
func (c *Channel) Post(m autosave.Message) error {
	c.mu.Lock()
	life, asked := c.life, c.asked[m.Round]
	c.mu.Unlock()
	if life == nil {
		return c.local.Post(m)
	}
	if strings.HasPrefix(m.Round, fromServer) {
		if asked != nil {
			select {
			case asked.answers <- pageAnswer{m, time.Now(), asked.ended}:
			default:
			}
		}
		return nil
	}
	switch m.Kind {
	case autosave.EditRequest:
		c.ask(life, m)
	case autosave.EditCancelled:
		c.stopAsking(m.Round)
	case autosave.Edits:
		c.stopAsking("")
		if t := c.document.held.of(m.Holder.Token); t != nil { // a page may announce itself again under the same lease
			t.attending.Do(func() { go c.attend(life, &attendance{t, make(chan pageAnswer, answersKept)}) })
		}
	}
	return c.local.Post(m)
}

// ask asks the holder on another machine, if the page waits for that holder. A question that the page repeats is for the tabs of this browser: it
// is on its way to the server already.
func (c *Channel) ask(life context.Context, m autosave.Message) {
	ctx, stop := context.WithCancel(life)
	c.mu.Lock()
	last, again := c.asking[m.Round]
	repeated := again && last.number == m.Question && m.Question > 0
	if !repeated {
		c.asking[m.Round] = pageQuestion{m.Question, stop}
	}
	c.mu.Unlock()
	switch {
	case repeated:
		stop()
		return
	case again:
		last.stop()
	}
	go func() {
		defer stop()
		reply, err := c.document.questions.put(ctx, c.id, m.Grace, func() {
			c.tell(autosave.Message{Kind: autosave.EditAccepted, Round: m.Round, Remote: true})
		})
		if ctx.Err() != nil || errors.Is(err, errNotWaiting) || granted(reply, err) {
			return
		}
		answer := autosave.Message{Kind: autosave.EditSilent, Round: m.Round, Remote: true}
		switch {
		case err == nil && reply.Error == "handover_refused":
			answer.Kind, answer.Detail = autosave.EditRefused, reply.Reason
		case err == nil && reply.Error == "handover_busy":
			answer.Kind = autosave.EditBusy
		case err == nil && reply.Error == "handover_timeout":
			answer.Detail = "the page that edits is on another machine and does not answer; force does not reach there"
		default:
			answer.Detail = "the server could not be asked: " + unanswered(reply, err).Error()
		}
		c.tell(answer)
	}()
}

// stopAsking withdraws the question of a round, or all questions of the page if the round is "".
func (c *Channel) stopAsking(round string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, a := range c.asking {
		if r == round || round == "" {
			a.stop()
			delete(c.asking, r)
		}
	}
}

func (c *Channel) tell(m autosave.Message) {
	c.mu.Lock()
	handle, life := c.handle, c.life
	c.mu.Unlock()
	if life.Err() == nil {
		handle(m)
	}
}

// answerAll sends the answers in order, until ctx ends.
func (c *Channel) answerAll(ctx context.Context, a *attendance) {
	for {
		select {
		case r := <-a.answers:
			c.answer(ctx, a.term, r)
		case <-ctx.Done():
			return
		}
	}
}

// answer sends the page's answer to a question that came from the server.
func (c *Channel) answer(ctx context.Context, t *term, r pageAnswer) {
	switch m := r.Message; m.Kind {
	case autosave.EditAccepted:
		c.reply(ctx, t, m, "accept", map[string]any{})
	case autosave.EditRefused:
		c.reply(ctx, t, m, "refuse", map[string]any{"reason": clipped(m.Detail)})
	case autosave.EditBusy:
		c.reply(ctx, t, m, "refuse", map[string]any{"busy": true})
	case autosave.EditGranted:
		ctx, stop := context.WithDeadline(ctx, r.at.Add(offerLimit))
		defer stop()
		open, end := until(ctx, r.ended)
		defer end()
		c.document.pass(ctx, open, r.ended, t)
	}
}

// reply answers a question. If the question has ended, reply reports this to the page.
func (c *Channel) reply(ctx context.Context, t *term, m autosave.Message, how string, fields map[string]any) {
	fields["ask_id"] = strings.TrimPrefix(m.Round, fromServer)
	reply, err := c.document.send(ctx, Request{Method: "POST", Path: c.path + "/lock/" + how, Token: t.claim.token, Fields: fields})
	if !passing(reply, err) && reply.Status != statusOK {
		c.over(m.Round)
	}
}

// maxReason is the maximum length of a reason for the server, in bytes.
const maxReason = 1024

func clipped(reason string) string {
	if len(reason) > maxReason {
		return strings.ToValidUTF8(reason[:maxReason], "")
	}
	return reason
}

// over reports to the page that a question from the server has ended. It reports nothing while a release can still reach the server, because the
// page must not edit then.
func (c *Channel) over(round string) {
	c.mu.Lock()
	asked := c.asked[round]
	delete(c.asked, round)
	c.mu.Unlock()
	if asked == nil {
		return
	}
	close(asked.ended)
	if !asked.releasing.Load() {
		c.tell(autosave.Message{Kind: autosave.EditCancelled, Round: round})
	}
}

// attend listens for questions until the lock has ended. It resumes after an interruption, from the moment of the
// grant.
func (c *Channel) attend(ctx context.Context, t *attendance) {
	ctx, stop := until(ctx, t.over)
	defer stop()
	go c.answerAll(ctx, t)
	after := t.claim.token // the revision of the grant
	pauses := lock.Backoff{MaxDelay: pauseLimit}.Delays()
	for ctx.Err() == nil {
		began := time.Now()
		c.listen(ctx, t, &after)
		if time.Since(began) > time.Minute {
			pauses = lock.Backoff{MaxDelay: pauseLimit}.Delays()
		}
		_ = wait.For(ctx, pauses())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for round, asked := range c.asked {
		if asked.attendance == t {
			delete(c.asked, round)
		}
	}
}

// listen listens over one connection. It gives up a connection without a sign of life once the server is known to be
// unreachable.
func (c *Channel) listen(ctx context.Context, t *attendance, after *int64) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer c.document.server.watch(func() {
		if !c.document.server.online() {
			stop()
		}
	})()
	_ = c.document.server.listen(ctx, c.path+"/events?after="+itoa(*after), func(n Notice) {
		*after = max(*after, n.Revision)
		if n.Token != t.claim.token {
			return
		}
		round := fromServer + n.Ask
		switch n.Type {
		case NoticeAsked:
			c.mu.Lock()
			c.asked[round] = &serverQuestion{t, make(chan struct{})}
			c.mu.Unlock()
			c.tell(autosave.Message{Kind: autosave.EditRequest, Round: round, From: n.HolderName, Remote: true})
		case NoticeAskEnded:
			c.over(round)
		}
	})
}
