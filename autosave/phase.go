package autosave

// Phase is the present activity of AutoSave.
type Phase string

// The phases.
const (
	PhaseDisabled     Phase = "disabled"        // switched off; nothing is ever written
	PhaseIdle         Phase = "idle"            // everything is durable
	PhaseDebouncing   Phase = "debouncing"      // there are changes; they are written soon
	PhaseAwaitingLock Phase = "awaiting-lock"   // it is not known yet whether this page may write
	PhaseWriting      Phase = "writing-current" // the content is being written
	PhaseIndex        Phase = "updating-index"  // the content is known, the index not yet written
	PhaseGC           Phase = "gc"              // committed; old generations are removed
	PhaseReadonly     Phase = "readonly"        // another page may write
	PhaseError        Phase = "error"           // the store failed; AutoSave tries again
)
