package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/kv/kvtest"
)

// people are two in a room: Ann has answered, Ben has not.
type people struct {
	room     any
	ann, ben *visitor
}

func meet(t *testing.T, at *instance) *people {
	t.Helper()
	p := &people{ann: visit(t, at, newJar(t)), ben: visit(t, at, newJar(t))}
	p.ann.send(object{"type": "createRoom", "userName": "Ann"})
	p.room = p.ann.next("roomCreated")["roomId"]
	p.ann.send(object{"type": "answer", "roomId": p.room, "answer": "tea"})
	p.ben.send(object{"type": "enterTheRoom", "userName": "Ben", "roomId": p.room})
	p.told(t, false, []string{"0 Ann tea", "1 Ben "}, []string{"0 Ann (hidden)", "1 Ben "})
	return p
}

// comeBack has both on new sockets, and they find the room as they left it.
func (p *people) comeBack(t *testing.T, ann, ben *instance) {
	t.Helper()
	for _, who := range []struct {
		v    **visitor
		at   *instance
		name string
	}{{&p.ann, ann, "Ann"}, {&p.ben, ben, "Ben"}} {
		former := *who.v
		_ = former.conn.CloseNow()
		*who.v = visit(t, who.at, newJar(t))
		(*who.v).send(object{"type": "enterTheRoom", "userName": who.name, "roomId": p.room, "previousToken": former.token})
	}
	p.told(t, false, []string{"0 Ann tea", "1 Ben "}, []string{"0 Ann (hidden)", "1 Ben "})
}

// open has Ben answer, and both see everything.
func (p *people) open(t *testing.T) {
	t.Helper()
	p.ben.send(object{"type": "answer", "roomId": p.room, "answer": "milk"})
	all := []string{"0 Ann tea", "1 Ben milk"}
	p.told(t, true, all, all)
}

// told waits until each participant has received this state of the room.
func (p *people) told(t *testing.T, open bool, ann, ben []string) {
	t.Helper()
	for v, want := range map[*visitor][]string{p.ann: ann, p.ben: ben} {
		for {
			info := v.next("roomInfo")
			if assert.ObjectsAreEqual(want, described(info)) {
				assert.Equal(t, open, info["room"].(object)["isOpen"])
				break
			}
		}
	}
}

func described(info object) (list []string) {
	for _, one := range present(info) {
		one := one.(object)
		answer := one["answer"]
		if one["hasAnswered"] == true {
			answer = "(hidden)"
		}
		list = append(list, fmt.Sprint(one["userNumber"], " ", one["name"], " ", answer))
	}
	return list
}

// From one server with its own store to three, as docs/operations.md describes: nothing is lost, and any one of them may stop.
func TestGrowingToThreeNodes(t *testing.T) {
	t.Parallel()
	alone := server.DefaultConfig()
	alone.DataDir, alone.Blobs = kvtest.Dir(t), t.TempDir()
	alone.RoomGrace, alone.LockTTL = 10*time.Minute, 10*time.Minute // however slow this machine is, nobody has left and no lock has run out
	s := startWith(t, alone)
	ann := s.as(t, "ann").named("Ann")
	tokens := map[string]int64{}
	for i := range 20 {
		document := fmt.Sprint("r", i)
		tokens[document] = ann.lock(document)
		require.Equal(t, http.StatusOK, ann.save(document, tokens[document], "text of "+document).status)
	}
	path := ann.do("POST", "/api/locks", object{"paths": [][]string{{"p", "q"}}, "ttl_ms": 600_000})
	require.Equal(t, http.StatusOK, path.status)
	people := meet(t, s)
	s.Stop(t)

	// 1. The same node again, now with addresses for others.
	grown := alone
	grown.PeerURL, grown.ClientURL = kvtest.FreeURL(t), kvtest.FreeURL(t)
	nodes := []*instance{startWith(t, grown)}
	people.comeBack(t, nodes[0], nodes[0])
	// 2. and 3. Two more with empty directories.
	for range 2 {
		c := server.DefaultConfig()
		c.RoomGrace, c.LockTTL = alone.RoomGrace, alone.LockTTL
		c.DataDir, c.Blobs, c.PeerURL, c.Join = kvtest.Dir(t), alone.Blobs, kvtest.FreeURL(t), []string{grown.ClientURL}
		nodes = append(nodes, startWith(t, c))
	}
	assertKept(t, nodes, tokens, path)
	people.comeBack(t, nodes[0], nodes[1])

	// The first node goes, and with it perhaps the leader: the others carry on, and expiry is on time, counted from when they have a leader.
	events := nodes[1].events(t, "brief", "")
	brief := nodes[2].as(t, "eve")
	request := object{"paths": [][]string{{"documents", "brief"}}, "ttl_ms": shortTTL.Milliseconds()}
	sent := time.Now()
	require.Equal(t, http.StatusOK, brief.do("POST", "/api/locks", request).status)
	answered := time.Now()
	people.ann.conn.CloseRead(t.Context()) // so that her socket answers the goodbye
	nodes[0].Stop(t)
	assertUnlocked(t, events, nodes[1], sent, answered)
	assertKept(t, nodes[1:], tokens, path)
	people.comeBack(t, nodes[2], nodes[1])
	people.open(t)
	for _, token := range tokens {
		assert.Greater(t, nodes[1].as(t, "eve").lock("new"), token)
	}
}

// assertKept checks that every node shows Ann's documents and their locks, and that her lease of a path lives.
func assertKept(t *testing.T, nodes []*instance, tokens map[string]int64, path answer) {
	t.Helper()
	for _, n := range nodes {
		bob, ann := n.as(t, "bob"), n.as(t, "ann")
		for document, token := range tokens {
			shown := bob.do("GET", lockOf(document), nil)
			assert.Equal(t, token, shown.token(), document)
			assert.Equal(t, "Ann", shown.body["holder_name"])
			assert.Equal(t, "text of "+document, string(bob.do("GET", contentOf(document), nil).text))
		}
		assert.Equal(t, http.StatusConflict, bob.do("POST", lockOf("r0"), nil).status)
		assert.Equal(t, http.StatusOK, ann.do("PUT", "/api/locks/"+path.body["lease_id"].(string), nil).status)
	}
}
