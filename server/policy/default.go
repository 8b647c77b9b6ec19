package policy

// Anonymous is the policy of a server without users and without a policy file. SignedIn is the policy of a server with
// users.
var (
	Anonymous = &Policy{[]Rule{{Subject: Subject{kind: anyone}, Path: Pattern{{open: true}}, May: Read | Lock | Write}}}
	SignedIn  = &Policy{[]Rule{{Subject: Subject{kind: signedIn}, Path: Pattern{{open: true}}, May: Read | Lock | Write}}}
)
