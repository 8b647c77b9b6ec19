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

// Instances counts the objects of a class that live in the tab's page, after a collection of what nobody refers to.
func (tab *Tab) Instances(class string) (count int) {
	tab.t.Helper()
	tab.must("count the instances of "+class, tab.do(func(ctx context.Context) error {
		return ofInstances(ctx, class, "function() { return this.length }", &count)
	}))
	return count
}

// Memory is how many bytes the tab's page and its workers have in use, after a collection of what nobody refers to:
// JavaScript's objects and buffers, and the memories of Wasm, which never shrink.
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

// ofInstances calls a function on the array of all objects of a class that live after a collection of what nobody
// refers to.
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
