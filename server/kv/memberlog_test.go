package kv

import "testing"

// A member keeps applied entries in memory for followers that must catch up, but a bounded number of them.
func TestTheLogOfAMemberInMemoryIsBounded(t *testing.T) {
	AssertGrowth(t, openMember(t, byName(t)), 6500, 10<<10, 45<<20)
}
