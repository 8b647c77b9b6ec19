//go:build js && wasm

package opfs

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// The messages about a query. A question names the asking client and its number. The answer also names the answering
// client: the table now contains everything that the client had begun when it received the question.
const (
	asking    = "?"
	answering = "!"
)

const (
	// hearing is how long a query waits for answers. A client that left a question unanswered is not waited for until
	// it answers again.
	hearing = 100 * time.Millisecond
	// doubtful is the time after which a query checks whether the clients that have not answered live.
	doubtful = 10 * time.Millisecond
)

// questions are those that this client asks the others before a settled query.
type questions struct {
	name    string // of this client in its questions
	hearing time.Duration

	mu      sync.Mutex
	asked   int64            // number of questions asked so far
	answers map[string]int64 // by client: the last question it answered
}

// next returns the number of a new question, and the message that asks it.
func (q *questions) next() (number int64, words []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked++
	return q.asked, []string{asking, q.name, strconv.FormatInt(q.asked, 10)}
}

// answered takes the answer of a client.
func (q *questions) answered(client, number string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers[client], _ = strconv.ParseInt(number, 10, 64)
}

// unanswered returns the clients that have not answered a question. Those that had the time to answer are not waited
// for any more.
func (q *questions) unanswered(number int64, clients []string, waited time.Duration) (missing []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, client := range clients {
		if q.answers[client] >= number {
			continue
		}
		missing = append(missing, client)
		if waited > q.hearing {
			q.answers[client] = math.MaxInt64
		}
	}
	return missing
}

// forget drops the answers of the clients that are gone.
func (q *questions) forget(gone func(client string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for client := range q.answers {
		if gone(client) {
			delete(q.answers, client)
		}
	}
}
