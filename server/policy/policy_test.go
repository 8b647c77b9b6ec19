package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/server/users"
)

func parse(t testing.TB, text string) *Policy {
	p, err := Parse([]byte(text))
	require.NoError(t, err)
	return p
}

func TestFirstRuleDecides(t *testing.T) {
	p := parse(t, `
		user:root      *                    admin
		anyone         documents/secret     # nothing
		group:editors  documents/blog-*     read lock write max-ttl=10m
		signed-in      documents            read
		anyone         a%20b/%2A            read
	`)
	root, ann, bob, nobody := users.User{Name: "root"}, users.User{Name: "ann", Groups: []string{"editors"}}, users.User{Name: "bob"}, users.User{}
	for _, c := range []struct {
		who  users.User
		path string
		may  Permission
	}{
		{root, "documents/secret", all}, {root, "x", all}, {ann, "documents/secret", 0}, {ann, "documents/blog-1", Read | Lock | Write},
		{ann, "documents/blog-1/line", Read | Lock | Write}, {ann, "documents/other", Read}, {bob, "documents/blog-1", Read}, {bob, "x", 0},
		{nobody, "documents/blog-1", 0}, {nobody, "a b/*", Read}, {nobody, "a b/c", 0}, {nobody, "a b", 0},
	} {
		for what := Read; what <= Admin; what <<= 1 {
			assert.Equal(t, c.may&what != 0, p.May(c.who, strings.Split(c.path, "/"), what), "%v %s %d", c.who, c.path, what)
		}
	}
	assert.Equal(t, Limits{TTL: 10 * time.Minute}, p.Limits(ann, []string{"documents", "blog-1"}))
	assert.Zero(t, p.Limits(bob, []string{"documents", "blog-1"}))
}

func TestBrokenPoliciesNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"anyone a read\nbob a read":      `line 2: "bob" names no users`,
		"user: a read":                   "names no users",
		"anyone":                         "no path",
		"anyone a fly":                   `"fly" is no permission`,
		"anyone a//b read":               "empty component",
		"anyone a*b read":                "star inside a component",
		"anyone a%zz read":               "not escaped correctly",
		"anyone a read max-ttl=1ms":      "max-ttl=1ms: the minimum is 100ms",
		"anyone a read max-everything=1": "the limits are max-ttl, max-locks and max-documents",
		"anyone a read max-locks=0":      "max-locks=0: the minimum is 1",
		"anyone a read max-documents=x":  "max-documents=x",
	} {
		_, err := Parse([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestLimitsOfARule(t *testing.T) {
	p := parse(t, "group:guests * lock max-locks=3 max-documents=5\nanyone * lock")
	assert.Equal(t, Limits{Locks: 3, Documents: 5}, p.Limits(users.User{Name: "ann", Groups: []string{"guests"}}, []string{"a"}))
	assert.Zero(t, p.Limits(users.User{Name: "bob"}, []string{"a"}))
}

// reference is the meaning of a policy in ten lines: the first rule that matches a path, tried at each path of a small
// world.
func reference(rules []string, u users.User, path, what string) bool {
	for _, rule := range rules {
		f := strings.Fields(rule)
		matches, pattern, parts := true, strings.Split(f[1], "/"), strings.Split(path, "/")
		for i, c := range pattern {
			matches = matches && i < len(parts) && (parts[i] == c || strings.HasSuffix(c, "*") && strings.HasPrefix(parts[i], c[:len(c)-1]))
		}
		if kind, name, _ := strings.Cut(f[0], ":"); matches && (kind == "anyone" || kind == "signed-in" && u.Name != "" || kind == "user" && name == u.Name || kind == "group" && slices.Contains(u.Groups, name)) {
			return slices.Contains(f[2:], what)
		}
	}
	return false
}

// paths returns all paths of one to three of the names.
func paths(names ...string) (list []string) {
	for _, a := range names {
		list = append(list, a)
		for _, b := range names {
			list = append(list, a+"/"+b)
			for _, c := range names {
				list = append(list, a+"/"+b+"/"+c)
			}
		}
	}
	return list
}

// Random policies and requests decide as the reference does. The reference tries each path below, in a world whose
// components are the ones that rules name and one that no rule names.
func TestRandomPoliciesAgreeWithReference(t *testing.T) {
	const seed = 19
	random := rand.New(rand.NewPCG(seed, seed))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	world := paths("x", "xa", "xab", "y", "other")
	who := []users.User{{}, {Name: "ann"}, {Name: "bob", Groups: []string{"g"}}}
	allowed, below := 0, 0
	for range 3000 {
		var rules []string
		for range 1 + random.IntN(8) {
			var parts []string
			for range 1 + random.IntN(3) {
				parts = append(parts, pick("*", "x*", "xa*", "x", "xa", "y"))
			}
			may := pick("", "read", "read lock", "read lock", "read lock write")
			rules = append(rules, fmt.Sprint(pick("anyone", "anyone", "signed-in", "user:ann", "group:g"), " ", strings.Join(parts, "/"), " ", may))
		}
		p := parse(t, strings.Join(rules, "\n"))
		for range 10 {
			u, path := who[random.IntN(len(who))], world[random.IntN(len(world))]
			parts := strings.Split(path, "/")
			want := reference(rules, u, path, "lock")
			require.Equal(t, want, p.May(u, parts, Lock), "%v %s in\n%s", u, path, strings.Join(rules, "\n"))
			everywhere, somewhere := true, false
			for _, place := range world {
				if place == path || strings.HasPrefix(place, path+"/") {
					may := reference(rules, u, place, "lock")
					everywhere, somewhere = everywhere && may, somewhere || may
				}
			}
			require.False(t, somewhere && !p.MaySomewhere(u, parts, Lock), "%v at or below %s in\n%s", u, path, strings.Join(rules, "\n"))
			require.Equal(t, everywhere, p.MayBelow(u, parts, Lock), "%v at and below %s in\n%s", u, path, strings.Join(rules, "\n"))
			if want {
				allowed++
			}
			if everywhere {
				below++
			}
		}
	}
	assert.Greater(t, allowed, 1000)
	assert.Greater(t, below, 500)
}

// A user that may lock everything below a place may lock the place.
func TestMayBelow(t *testing.T) {
	p := parse(t, "anyone a/secret\nanyone a lock\nanyone b/x lock\nanyone b/x\nanyone b lock")
	assert.False(t, p.MayBelow(users.User{}, []string{"a"}, Lock))
	assert.True(t, p.MayBelow(users.User{}, []string{"a", "open"}, Lock))
	assert.True(t, p.MayBelow(users.User{}, []string{"b"}, Lock), "the rule that forbids never decides")
	assert.False(t, p.MayBelow(users.User{}, []string{"c"}, Lock))
}

// A user that may do nothing at a place and below it is known without a look at the places below.
func TestMaySomewhere(t *testing.T) {
	p := parse(t, "anyone a/secret\nanyone a/*/x lock\nanyone b read\nanyone * read\nanyone b/x lock")
	assert.True(t, p.MaySomewhere(users.User{}, []string{"a"}, Lock))
	assert.False(t, p.MaySomewhere(users.User{}, []string{"a", "secret"}, Lock))
	assert.False(t, p.MaySomewhere(users.User{}, []string{"b"}, Lock), "an earlier rule decides")
	assert.False(t, p.MaySomewhere(users.User{}, []string{"c"}, Lock))
}

// The root is above every path.
func TestMayBelowTheRoot(t *testing.T) {
	root, ann := users.User{Name: "root"}, users.User{Name: "ann"}
	p := parse(t, "user:ann documents admin\nuser:ann a* admin\nuser:root * admin\nanyone * read")
	assert.True(t, p.MayBelow(root, nil, Admin))
	assert.False(t, p.MayBelow(ann, nil, Admin), "the last rule decides elsewhere")
	assert.True(t, p.MayBelow(ann, nil, Read))
	hidden := parse(t, "anyone documents/secret\nuser:root * admin")
	assert.False(t, hidden.MayBelow(root, nil, Admin), "not everywhere")
	assert.True(t, parse(t, "user:root documents/x admin\nuser:root * admin\nuser:root other").MayBelow(root, nil, Admin))
	assert.False(t, parse(t, "user:root documents admin").MayBelow(root, nil, Admin), "no rule is no permission")
}

// The last of 1,000 rules decides.
func BenchmarkThousandRules(b *testing.B) {
	var text strings.Builder
	for i := range 999 {
		fmt.Fprintf(&text, "group:g%d documents/team-%d-* read lock write\n", i, i)
	}
	text.WriteString("signed-in documents read lock\n")
	p := parse(b, text.String())
	u := users.User{Name: "ann", Groups: []string{"g5", "g7", "g9"}}
	path := []string{"documents", "team-998-plan"}
	for b.Loop() {
		if !p.MayBelow(u, path, Lock) {
			b.Fatal("refused")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("anyone a/b* read lock max-ttl=1m\n# x\nuser:a%20b * admin")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text))
		if err == nil {
			p.MayBelow(users.User{Name: "x"}, []string{"a"}, Lock)
		}
	})
}
