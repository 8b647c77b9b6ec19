//go:build js && wasm

package main

import (
	"context"

	"github.com/hack-pad/safejs"

	"github.com/holdfast-dev/holdfast/jsbridge"
)

func (e *editor) history(ctx context.Context, _ reader) (any, error) {
	all, err := e.saver.History(ctx)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(all))
	for i, g := range all {
		values[i] = encodeGeneration(g)
	}
	return jsbridge.JSON(values), nil
}

func (e *editor) read(ctx context.Context, arg reader) (any, error) {
	return content(e.saver.Read(ctx, arg.text("id")))
}

func (e *editor) restore(ctx context.Context, arg reader) (any, error) {
	value, err := content(e.saver.Restore(ctx, arg.text("id")))
	return e.done(ctx, value, err)
}

func (e *editor) pin(ctx context.Context, arg reader) (any, error) {
	id, name := arg.text("id"), arg.text("name")
	if _, there := arg.get("name", safejs.TypeString, "a string"); !there {
		arg.fault("name", "must be a string; an empty one lets the generation go")
	}
	if arg.err != nil {
		return nil, arg.err
	}
	g, err := e.saver.Pin(ctx, id, name)
	if err != nil {
		return nil, err
	}
	return jsbridge.JSON(encodeGeneration(g)), nil
}

func content(bytes []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return jsbridge.Uint8Array(bytes)
}
