package endings

import (
	"fmt"

	"github.com/stretchr/testify/assert"
)

// tearing gives a page snapshots of every kind, a state that changes in place, and the attack on them.
const tearing = `
const encode = text => new TextEncoder().encode(text)
const state = {text: ''}
let buffer = encode('')
const put = now => { state.text = now; buffer.fill(46); buffer = encode(now) }
const kinds = {
  string: () => state.text,
  bytes: () => buffer,
  object: () => state,
  promise: async () => { const {text} = state; await sleep(5); return text },
}
// attack types a word, ends the AutoSave in the same task, and shows another text or none before that task ends.
const attack = (word, method, then) => {
  put(word)
  autosave.markDirty()
  const done = failure(method === 'close' ? hf.close() : autosave[method]())
  put(then)
  return done
}
Object.assign(globalThis, {kinds, attack})
`

// teardownAttack is one attack: a page in a role calls a method, and changes its text in the same task.
type teardownAttack struct {
	role, method, kind, then string
}

var (
	tearRoles   = []string{"editing", "handing over", "read-only", "loading"}
	tearMethods = []string{"dispose", "close", "flushNow"}
	tearKinds   = []string{"string", "bytes", "object", "promise"}
	tearThen    = []string{"", "another document"}
)

// teardownAttacks returns all attacks, or enough that each pair of their parts is in one of them, or one for each role.
func teardownAttacks(form Form) (list []teardownAttack) {
	for r, role := range tearRoles {
		for m, method := range tearMethods {
			for k, kind := range tearKinds {
				for n, then := range tearThen {
					pairs := (r+m+k)%4 == 0 && n == (r+m)%2
					if form == Full || pairs && (form == Short || m == r%3) {
						list = append(list, teardownAttack{role, method, kind, then})
					}
				}
			}
		}
	}
	return list
}

// When a page ends its AutoSave or asks for a save, the text of that task is saved or becomes a draft. Text that the
// page shows afterwards does not count.
func teardown(s *series) {
	each(s, teardownAttacks(s.form), teardownAttack.String, func(s *series, c teardownAttack) {
		s.rounds(1, 3, func(s *Scene) { s.teardown(c) })
	})
}

func (c teardownAttack) String() string {
	return fmt.Sprintf("%s %s %s then %q", c.role, c.method, c.kind, c.then)
}

func (s *Scene) teardown(c teardownAttack) {
	ann := s.open(s.project("Ann"))
	ann.do(tearing + "; await edit(" + Unsaved + ", kinds." + c.kind + ")")
	attack := fmt.Sprintf("globalThis.answer = attack('typed', '%s', '%s')", c.method, c.then)
	in := Anywhere
	switch c.role {
	case "editing":
		ann.do(attack)
		got := get[map[string]any](ann, "await answer")
		assert.Empty(s, got["code"], "%v", got)
		ann.do("await hf.close()")
		in = []string{"content"}
	case "loading":
		ann.do(`autosave.addEventListener('autosave:editable', e => {
			e.detail.waitUntil(sleep(50))
			` + attack + `
		}, {once: true})`)
		ann.wait("Boolean(globalThis.answer)")
		ann.do("await answer; await failure(hf.close())")
	case "read-only":
		ben := s.open(s.project("Ben"))
		ben.do("globalThis.stealer = await hf.acquireProjectLock({steal: true})")
		ann.wait("autosave.readOnly")
		ann.do(attack)
		got := get[map[string]any](ann, "await answer")
		assert.NotEmpty(s, got["code"], "it says what could not be saved: %v", got)
		ann.do("await failure(hf.close())")
		ben.do("await hf.close()")
	case "handing over":
		ben := s.edits("Ben", Unsaved)
		ann.do("hf.addEventListener('lock:handover-requested', () => { " + attack + " }, {once: true})")
		ben.do("await failure(autosave.requestEdit())")
		ann.do("await answer")
		s.found(ben, "typed", Anywhere...)
		ben.do("await hf.close()")
		ann.do("await failure(hf.close())")
	}
	s.kept(c, in...)
	assert.Empty(s, get[[]string](ann, "globalThis.problems ?? uncaught"))
}

// kept opens the document again. It asserts where the typed word is, and that the text shown afterwards is nowhere.
func (s *Scene) kept(c teardownAttack, in ...string) {
	s.Helper()
	next := s.edits("Cleo", Unsaved)
	s.found(next, "typed", in...)
	if c.then != "" {
		assert.Equal(s, "nowhere", get[string](next, "await places('"+c.then+"')"), "the text shown afterwards is nowhere")
	}
	next.do("await hf.close()")
}
