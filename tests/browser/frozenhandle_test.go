package browser_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-dev/holdfast/tests/browser"
)

// A tab is frozen while its worker opens and closes a file repeatedly. A handle may then be on its way to the worker,
// which cannot close it, so nobody else can open the file until the tab resumes, as docs/guarantees.md says. (Chromium 156: 12 of
// 25 freezes.) After the tab resumes, the file is free.
func TestFrozenWhileAHandleIsOnItsWay(t *testing.T) {
	l := openLab(t, browser.Options{})
	observer, tab := l.tab(t, "observer"), l.tab(t, "tab")
	const prepare = `globalThis.opener = new Worker(URL.createObjectURL(new Blob([` + "`" + `
		const file = navigator.storage.getDirectory().then(dir => dir.getFileHandle('shared', {create: true}));
		const once = async () => { try { (await (await file).createSyncAccessHandle()).close(); return true } catch { return false } };
		onmessage = async ({data}) => {
			if (data === 'loop') { postMessage('looping'); for (;;) await once() }
			const end = performance.now() + data;
			while (performance.now() < end) if (await once()) return postMessage(true);
			postMessage(false)
		}` + "`" + `])));
		globalThis.askOpener = what => new Promise(done => { opener.onmessage = ({data}) => done(data); opener.postMessage(what) });`
	observer.MustEval(prepare+"1", nil)
	tab.MustEval(prepare+"await askOpener('loop')", nil)
	for range 40 {
		tab.Freeze()
		free := browser.Get[bool](observer, "await askOpener(1500)")
		tab.Resume()
		assert.True(t, browser.Get[bool](observer, "await askOpener(20000)"), "it goes on")
		if !free {
			return
		}
	}
	assert.Fail(t, "a frozen tab keeps no file open any more: change docs/guarantees.md")
}
