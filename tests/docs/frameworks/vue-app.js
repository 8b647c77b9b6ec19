import { createApp, h, ref } from "vue";
import { useAutoSave } from "holdfast/vue";
import Notes from "./Notes.vue";

/** An editor that loads a content when `loaded` resolves. */
const Slow = {
  setup() {
    const text = ref("");
    const { autosave, readOnly, markDirty } = useAutoSave(() => text.value, {
      path: ["slow"],
      load: async (content) => {
        await globalThis.loaded;
        text.value = new TextDecoder().decode(content);
      },
    });
    const type = (event) => {
      text.value = event.target.value;
      markDirty();
    };
    return () => {
      globalThis.autosave = autosave.value;
      return h("textarea", { value: text.value, readOnly: readOnly.value, onInput: type });
    };
  },
};

/** An editor whose load fails while `broken` is set. */
const Broken = {
  setup() {
    const text = ref("");
    const { autosave, readOnly, error, markDirty } = useAutoSave(() => text.value, {
      path: ["broken"],
      load: (content) => {
        if (globalThis.broken) throw new Error("planted");
        text.value = new TextDecoder().decode(content);
      },
    });
    const type = (event) => {
      text.value = event.target.value;
      markDirty();
    };
    return () => {
      Object.assign(globalThis, { autosave: autosave.value, failure: error.value });
      return h("textarea", { value: text.value, readOnly: readOnly.value, onInput: type });
    };
  },
};

const parts = { Notes, Slow, Broken };
let app;
globalThis.show = (name) => {
  app?.unmount();
  app = name && createApp(parts[name]);
  app?.mount("#app");
};
