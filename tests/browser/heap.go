package browser

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
)

// Instances counts the objects of a class that live in the tab's page, after a collection of what nobody refers to.
func (tab *Tab) Instances(class string) int {
	tab.t.Helper()
	var count int
	tab.must("count the instances of "+class, tab.do(func(ctx context.Context) error {
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
		length, thrown, err := runtime.CallFunctionOn("function() { return this.length }").WithObjectID(found.ObjectID).WithReturnByValue(true).Do(ctx)
		if err != nil || thrown != nil {
			return errors.Join(err, asError(thrown))
		}
		return errors.Join(json.Unmarshal(length.Value, &count), runtime.ReleaseObject(found.ObjectID).Do(ctx))
	}))
	return count
}

func asError(thrown *runtime.ExceptionDetails) error {
	if thrown == nil {
		return nil
	}
	return thrown
}
