//go:build js && wasm

package opfs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/wait"
	"github.com/holdfast-dev/holdfast/jsbridge"
)

// The helper stands still and has more than a megabyte to write. It is replaced in time, although the page goes on asking it.
func TestStuckHelperIsReplacedWhileThePageAsks(t *testing.T) {
	files := made("files.js", `new module.Files(() => (self.fake = { terminate() {}, postMessage(ask) {
		if (ask.do === "preopen") queueMicrotask(() => this.onmessage({ data: { file: ask.file } }));
	} }))`)
	defer func() { must(files.Call("close")) }()
	must(call(t.Context(), files, "preopen", "root"))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		for wait.For(ctx, time.Second) == nil {
			go func() { _, _ = ask(ctx, files, "probe", nil) }()
		}
	}()
	_, err := ask(ctx, files, "finish", 1, must(jsbridge.NewBytes(1<<20+1)))
	require.True(t, isNamed(err, notOpened), "%v", err)
	stop()
	<-asking
}

// Requests follow each other without a pause, and the helper answers each of them. When it stands still then, it does not get the time for what it
// has written before.
func TestStuckHelperIsReplacedAfterMuchWork(t *testing.T) {
	files := made("files.js", `new module.Files(() => (self.fake = { terminate() {}, postMessage(ask) {
		if (ask.args[0] < 50) setTimeout(() => this.onmessage({ data: { file: ask.file } }), 20);
	} }))`)
	defer func() { must(files.Call("close")) }()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	answers := make(chan error, 2)
	finish := func(id int) {
		promise := must(files.Call("finish", id, must(jsbridge.NewBytes(1<<20))))
		go func() { _, err := jsbridge.Await(ctx, promise); answers <- err }()
	}
	finish(0)
	for id := range 50 {
		finish(id + 1) // before the answer to the last one
		require.NoError(t, <-answers)
	}
	err := <-answers
	require.True(t, isNamed(err, notOpened), "%v", err)
}
