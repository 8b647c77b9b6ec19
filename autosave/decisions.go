package autosave

import "context"

// decisions makes the user and a loader decide about a draft one after the other, so that this page either discards the draft or makes it part
// of the content. Any goroutine may use it.
type decisions struct {
	turn    chan struct{}       // capacity 1: full while somebody decides
	decided map[string]decision // by the id of the draft; used by the holder of the turn
}

// decision is the last one about a draft.
type decision struct {
	as     Resolution // AsContent or AsDiscard
	number int64      // of the draft
}

func newDecisions() *decisions {
	return &decisions{turn: make(chan struct{}, 1), decided: make(map[string]decision)}
}

// decide calls act, which carries out the decision, and returns the decision. If the opposite was decided before, decide returns that and
// does not call act. It fails with the error of act, or if ctx ends while another decision is carried out.
func (ds *decisions) decide(ctx context.Context, d Draft, as Resolution, act func() error) (Resolution, error) {
	select {
	case ds.turn <- struct{}{}:
		defer func() { <-ds.turn }()
	case <-ctx.Done():
		return "", late(ctx, CodeWriteFailed, theStore)
	}
	if before := ds.decided[d.ID]; before.as != "" && before.as != as && before.number >= d.Number {
		return before.as, nil
	}
	if err := act(); err != nil {
		return "", err
	}
	ds.decided[d.ID] = decision{as, d.Number}
	return as, nil
}
