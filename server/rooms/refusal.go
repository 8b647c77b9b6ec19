package rooms

import "net/http"

// A refusal is an error for the client: a code for programs, a sentence for people.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

// The codes are part of the protocol.
var (
	errMalformed    = &refusal{"invalid_request", "The message is not a JSON object with a type."}
	errUnknownType  = &refusal{"unknown_type", "No message has this type."}
	errBinary       = &refusal{"invalid_request", "Messages are text."}
	errTooLarge     = &refusal{"message_too_large", "The message is longer than any valid one."}
	errForeignToken = &refusal{"foreign_token", "The userToken is not the one this socket was given."}
	errNoRoom       = &refusal{"room_not_found", "There is no such room, or it has been closed."}
	errNotInRoom    = &refusal{"not_in_room", "This socket has not entered that room."}
	errNoSpace      = &refusal{"store_full", "The server has no space for more participants; those who are in a room go on."}
	errFull         = &refusal{"room_full", "The room has reached its limit of participants or bytes."}
	errClosed       = &refusal{"room_closed", "The room was closed."}
	errRemoved      = &refusal{"removed", "This socket is no longer in its room; it may enter again."}
	errNotAllowed   = &refusal{"not_allowed", "You may not do this in this room, or the room does not exist."}
	errUnavailable  = &refusal{"unavailable", "The server cannot reach its store; try again."}
)

func invalid(message string) *refusal { return &refusal{"invalid_request", message} }

// answer refuses a request before its upgrade, in the API's error format.
func (r *refusal) answer(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(marshal(struct {
		Success bool   `json:"success"`
		Code    string `json:"error"`
		Message string `json:"message"`
	}{false, r.code, r.message})) // an error means that the client is gone
}
