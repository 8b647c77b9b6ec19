package sessions

import (
	"net/http"

	"github.com/holdfast-dev/holdfast/server/users"
)

// OfProgram returns the session of a program that cannot choose its headers, such as a word processor. The user is that of an
// API key or token, which is the password of Basic authentication or a bearer, or the user that a proxy names. Cookies
// do not count, so that a page of another site cannot use those of a browser.
//
// Without a user, the owner is the secret if there is one, and otherwise the address. kind tells the owners of one
// interface from those of another.
func (s Source) OfProgram(r *http.Request, kind, address string) (Session, error) {
	plain := r.Clone(r.Context())
	if _, password, ok := r.BasicAuth(); ok {
		plain.Header.Set("Authorization", "Bearer "+password)
	}
	id, err := s.Users.Of(plain)
	if err != nil {
		return Session{}, err
	}
	session := Session{User: id.User, Name: Clean(id.Name), UserEnds: id.Ends, Still: id.Still, Proven: id.SignedIn()}
	if id.SignedIn() && session.Name == "" {
		return session, users.ErrUnauthenticated
	}
	owner := "\naddress\n" + address // which is no secret of another client, because no secret begins with a line break
	if plain.Header.Get("Authorization") != "" && !id.SignedIn() {
		if owner, err = users.Bearer(plain, maxSecret); err != nil {
			return Session{}, ErrSecret
		}
	}
	if id.SignedIn() {
		owner = ""
	}
	named, err := programSession(r)
	if err != nil {
		return Session{}, err
	}
	session.HolderID = HolderID(owner + named + "\nprogram\n" + kind + belongsTo(id.User))
	return session, nil
}
