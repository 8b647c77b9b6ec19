package browser

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
)

// Instances counts the live objects of a class in the tab's page, after a garbage collection.
func (tab *Tab) Instances(class string) (count int) {
	tab.t.Helper()
	tab.must("count the instances of "+class, tab.do(func(ctx context.Context) error {
		return ofInstances(ctx, class, "function() { return this.length }", &count)
	}))
	return count
}

// Memory returns the bytes in use by the tab's page and its workers after a garbage collection: JavaScript's objects
// and buffers, and the Wasm memories, which never shrink.
func (tab *Tab) Memory() (objects, wasm float64) {
	tab.t.Helper()
	measure := func(ctx context.Context) error {
		var memories float64
		err := ofInstances(ctx, "WebAssembly.Memory", "function() { return this.reduce((sum, { buffer }) => sum + buffer.byteLength, 0) }", &memories)
		if err != nil {
			return err
		}
		used, _, ofTheBrowser, buffers, err := runtime.GetHeapUsage().Do(ctx)
		objects += used + ofTheBrowser + buffers
		wasm += memories
		return err
	}
	tab.must("measure the memory", tab.do(measure))
	tab.mu.Lock()
	workers := slices.Collect(maps.Values(tab.workers))
	tab.mu.Unlock()
	for _, w := range workers {
		tab.must("measure the memory of a worker", tab.onWorker(w, measure))
	}
	return objects, wasm
}

// ofInstances calls a function with the array of all live objects of a class after a garbage collection.
func ofInstances(ctx context.Context, class, function string, out any) error {
	if err := heapprofiler.CollectGarbage().Do(ctx); err != nil {
		return err
	}
	prototype, thrown, err := runtime.Evaluate(class + ".prototype").Do(ctx)
	if err != nil || thrown != nil {
		return errors.Join(err, asError(thrown))
	}
	found, err := runtime.QueryObjects(prototype.ObjectID).Do(ctx)
	if err != nil {
		return err
	}
	value, thrown, err := runtime.CallFunctionOn(function).WithObjectID(found.ObjectID).WithReturnByValue(true).Do(ctx)
	if err != nil || thrown != nil {
		return errors.Join(err, asError(thrown))
	}
	return errors.Join(json.Unmarshal(value.Value, out), runtime.ReleaseObject(found.ObjectID).Do(ctx))
}

func asError(thrown *runtime.ExceptionDetails) error {
	if thrown == nil {
		return nil
	}
	return thrown
}
