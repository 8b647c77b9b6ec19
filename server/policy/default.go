package policy

// Anonymous is the policy of a server without users and without a policy file, SignedIn that of one with users.
var (
	Anonymous = &Policy{[]Rule{{Who: Who{kind: anyone}, Path: Pattern{{open: true}}, May: Read | Lock | Write}}}
	SignedIn  = &Policy{[]Rule{{Who: Who{kind: signedIn}, Path: Pattern{{open: true}}, May: Read | Lock | Write}}}
)
