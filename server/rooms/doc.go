// Package rooms lets people meet in a room over a WebSocket: everybody answers, and nobody sees another participant's
// answer until all have answered. Rooms live in the store, so the participants of one room may be connected to
// different instances of the server.
//
// A room is the value of one key, and the functions that change it (room.go) are pure. One transaction reads a room,
// computes the change, and commits it on the condition that the values read have not changed (table.go). After a
// conflict the change starts over. Each instance watches the key of a room once (feed.go) and sends every new state
// from that watch to its participants. The change itself sends nothing. So each participant receives a state at most once,
// in the order of revisions. A participant that is 16 states behind (outbox.go) gets the newest one only. A socket (socket.go) reads
// messages, carries them out and writes the outgoing messages.
//
// # Keys
//
//	rooms/<id>               the room as JSON
//	room_updates/<id>        the time of its last change, RFC 3339
//	user_rooms/<token>       the room of a participant
//	socket_instances/<token> the instance that its socket is connected to
//	instances/<instance>     the instance's sign of life, which it writes again and again
//
// # Coming back
//
// A page reload closes the socket and opens another one, which receives a new token. A participant that enters its
// room again keeps its number and its answer if it has one of two proofs:
//
//   - The message enterTheRoom carries the former token as previousToken. This proof is exact. It also works before the server
//     notices that the former socket is gone. If the former socket is still alive, it receives the error "removed".
//   - Without the former token, the session (the cookie or the bearer secret) and the name count together: the participant with the
//     same session and name comes back if its socket is gone.
//
// Without either proof, the server adds a new participant.
package rooms
