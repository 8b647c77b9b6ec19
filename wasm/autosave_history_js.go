//go:build js && wasm

package main

import (
	"context"

	"github.com/holdfast-dev/holdfast/jsbridge"
	"github.com/holdfast-dev/holdfast/wasm/options"
)

func (e *editor) history(ctx context.Context, _ *options.Reader) (any, error) {
	all, err := e.saver.History(ctx)
	if err != nil {
		return nil, err
	}
	return jsbridge.List(all, encodeGeneration), nil
}

// idIn returns the id of a generation or draft.
func idIn(arg *options.Reader) (string, error) {
	id := arg.Text("id")
	if !arg.Has("id") {
		arg.Fault("id", "must be a string")
	}
	return id, arg.Err()
}

func (e *editor) read(ctx context.Context, arg *options.Reader) (any, error) {
	id, err := idIn(arg)
	if err != nil {
		return nil, err
	}
	return content(e.saver.Read(ctx, id))
}

func (e *editor) restore(ctx context.Context, arg *options.Reader) (any, error) {
	id, err := idIn(arg)
	if err != nil {
		return nil, err
	}
	value, err := content(e.saver.Restore(ctx, id))
	return e.afterEvents(ctx, value, err)
}

func (e *editor) pin(ctx context.Context, arg *options.Reader) (any, error) {
	name := arg.Text("name")
	if !arg.Has("name") {
		arg.Fault("name", "must be a string; an empty one lets the generation go")
	}
	id, err := idIn(arg)
	if err != nil {
		return nil, err
	}
	g, err := e.saver.Pin(ctx, id, name)
	if err != nil {
		return nil, err
	}
	return encodeGeneration(g), nil
}

func content(bytes []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return jsbridge.Uint8Array(bytes)
}
