package chaosserver

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// call is a client's call about one document's lock.
type call struct {
	document string
	who      string
	verb     string // lock, unlock, beat or look
}

// reply is the reply to a call.
type reply struct {
	known  bool // false if the connection broke or the server did not know; the call may have taken effect or not
	status int
	token  int64
	holder string // the holder, if the reply names one
}

// state is the state of a document's lock: its holder, its token, and the highest token so far.
type state struct {
	holder  string
	token   int64
	highest int64
}

// model defines the allowed replies of a lock. Locks do not expire in these runs.
var model = (&porcupine.NondeterministicModel{
	Partition:         byDocument,
	Init:              func() []any { return []any{state{}} },
	Step:              func(s, input, output any) []any { return step(s.(state), input.(call), output.(reply)) },
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
}).ToModel()

func step(s state, c call, r reply) []any {
	if !r.known {
		return perhaps(s, c)
	}
	same := []any{s}
	switch {
	case c.verb == "look" && r.holder == s.holder && (s.holder == "" || s.token == anyToken || r.token == s.token):
		if s.holder != "" {
			s.token, s.highest = r.token, max(s.highest, r.token)
		}
		return []any{s}
	case c.verb == "lock" && r.status == 200 && s.holder == c.who && (s.token == anyToken || r.token == s.token):
		s.token, s.highest = r.token, max(s.highest, r.token)
		return []any{s}
	case c.verb == "lock" && r.status == 200 && s.holder == "" && r.token > s.highest:
		return []any{state{c.who, r.token, r.token}}
	case c.verb == "lock" && r.status == 409 && s.holder != "" && s.holder != c.who && r.holder == s.holder:
		return same
	case c.verb == "unlock" && r.status == 200 && (s.holder == c.who || s.holder == ""):
		s.holder, s.token = "", 0
		return []any{s}
	case c.verb == "beat" && r.status == 200 && s.holder == c.who:
		return same
	case c.verb == "beat" && r.status == 404 && s.holder == "":
		return same
	case (c.verb == "beat" || c.verb == "unlock") && r.status == 403 && s.holder != "" && s.holder != c.who:
		return same
	}
	return nil
}

// anyToken stands for the token of a grant whose reply was lost.
const anyToken = -1

// perhaps returns the possible results of a call without a reply.
func perhaps(s state, c call) []any {
	switch {
	case c.verb == "lock" && s.holder == "":
		return []any{s, state{c.who, anyToken, s.highest}}
	case c.verb == "unlock" && s.holder == c.who:
		return []any{s, state{"", 0, s.highest}}
	}
	return []any{s}
}

func byDocument(history []porcupine.Operation) [][]porcupine.Operation {
	documents := map[string][]porcupine.Operation{}
	for _, o := range history {
		document := o.Input.(call).document
		documents[document] = append(documents[document], o)
	}
	var list [][]porcupine.Operation
	for _, operations := range documents {
		list = append(list, operations)
	}
	return list
}
