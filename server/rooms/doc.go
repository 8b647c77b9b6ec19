// Package rooms lets people meet in a room over a WebSocket: everybody answers, nobody sees another's
// answer until all have answered. Rooms live in the store, so that the participants of one room may be
// connected to different instances of the server.
//
// A room is a value under one key, and the functions that change it (room.go) are pure. A change is read,
// computed and committed in one transaction that checks what was read (table.go); a conflict starts over.
// What a participant is told comes from one watch of the room's key per instance (feed.go), never from
// the change itself: so everybody learns each state once, in the order of its revision. A socket
// (socket.go) reads messages, has them carried out and writes what it is told.
//
// # Keys
//
//	rooms/<id>               the room as JSON
//	room_updates/<id>        when it last changed, RFC 3339
//	user_rooms/<token>       the room a participant is in
//	socket_instances/<token> the instance its socket is connected to
//
// # Coming back
//
// A reload closes the socket and opens another, which is issued a new token. Two proofs make it the same
// participant again, with its number and its answer, when it enters the room it was in:
//
//   - enterTheRoom bears the former token as previousToken. That is exact, and holds even while the server
//     has not noticed that the former socket is gone; if that lives, it is told that it is out of the room.
//   - Without it, the session (the cookie or the bearer secret) and the name count together: a participant
//     of the same session and name whose socket is gone comes back.
//
// Whoever has neither proof is somebody new.
package rooms
