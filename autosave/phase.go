package autosave

// Phase is what AutoSave is doing.
type Phase string

// The phases.
const (
	PhaseDisabled     Phase = "disabled"        // switched off; nothing is ever written
	PhaseIdle         Phase = "idle"            // everything is durable
	PhaseDebouncing   Phase = "debouncing"      // there are changes; they are written soon
	PhaseAwaitingLock Phase = "awaiting-lock"   // not known yet whether this page may write
	PhaseWriting      Phase = "writing-current" // the content is being written
	PhaseIndex        Phase = "updating-index"  // the content is known, the index not yet written
	PhaseGC           Phase = "gc"              // committed; old generations are removed
	PhaseReadonly     Phase = "readonly"        // somebody else may write
	PhaseError        Phase = "error"           // the store failed; it is tried again
)
