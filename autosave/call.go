package autosave

import (
	"context"
	"errors"
	"time"
)

// bounded gives a call its one deadline, which everything that the call waits for shares.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// before returns a context for one step: it ends after the limit, or earlier, so that the next step has its time before ctx ends.
func before(ctx context.Context, limit, next time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end)-next)
	}
	return context.WithTimeout(ctx, limit)
}

// late returns the error of a call that did not answer before ctx ended. If the caller has ended ctx, late returns its
// cause.
func late(ctx context.Context, code Code, what string) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return &Error{Code: code, Detail: what + " does not answer; try again, and restart the browser where that lasts", Err: cause}
}

// answered calls a port and returns when the port has answered or ctx has ended. A port that never answers blocks a
// goroutine, but no caller. After an error, call may still run: the values that it sets must not be used.
func answered(ctx context.Context, code Code, what string, call func(context.Context) error) error {
	answer := make(chan error, 1)
	go func() { answer <- call(ctx) }()
	select {
	case err := <-answer:
		if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			return late(ctx, code, what)
		}
		return err
	case <-ctx.Done():
		return late(ctx, code, what)
	}
}

// History returns all generations, the current one first. The error is that of [Store.List].
func (s *Saver) History(ctx context.Context) ([]Generation, error) {
	ctx, end, err := s.reading(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	return s.config.list(ctx)
}

// Read returns the content of a generation or the text of a draft; see [Store] and [Drafts].
func (s *Saver) Read(ctx context.Context, id string) ([]byte, error) {
	ctx, end, err := s.reading(ctx)
	defer end()
	if err != nil {
		return nil, err
	}
	if _, _, generation := parsePair(id); !generation && id != Current && s.config.Drafts != nil {
		text, err := s.config.readDraft(ctx, id)
		if err != nil {
			err = asError(err, CodeReadFailed, "the draft could not be read")
		}
		return text, err
	}
	return readFrom(ctx, theStore, s.config.Store.Read, id)
}
