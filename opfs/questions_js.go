//go:build js && wasm

package opfs

import (
	"math"
	"strconv"
	"time"
)

// The messages about a query. A question names the asking client and its number. The answer also names the answering
// client: the table now contains everything that the client had begun when it received the question.
const (
	asking    = "?"
	answering = "!"
)

const (
	// answerWait is how long a query waits for answers. A query does not wait for a client that left an earlier question
	// unanswered, until that client answers again.
	answerWait = 100 * time.Millisecond
	// probeAfter is the time after which a query checks whether the clients that have not answered live.
	probeAfter = 10 * time.Millisecond
)

// questions has the questions that this client asks other clients before a settled query. It needs no mutex, see requests.
type questions struct {
	name       string // of this client in its questions
	answerWait time.Duration

	asked   int64            // number of questions asked so far
	answers map[string]int64 // by client: the last question it answered
}

// next returns the number of a new question.
func (q *questions) next() int64 {
	q.asked++
	return q.asked
}

// answered takes the answer of a client.
func (q *questions) answered(client, number string) {
	q.answers[client], _ = strconv.ParseInt(number, 10, 64)
}

// unanswered reports whether a client has not answered a question. A query no longer waits for a client that had
// time to answer.
func (q *questions) unanswered(client string, number int64, waited time.Duration) bool {
	if q.answers[client] >= number {
		return false
	}
	if waited > q.answerWait {
		q.answers[client] = math.MaxInt64
	}
	return true
}

// forget drops the answers of the clients that are gone.
func (q *questions) forget(gone func(client string) bool) {
	for client := range q.answers {
		if gone(client) {
			delete(q.answers, client)
		}
	}
}
