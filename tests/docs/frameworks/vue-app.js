import { createApp, h, ref, shallowRef } from "vue";
import { createHoldfast } from "holdfast";
import { useAutoSave, useEditor } from "holdfast/vue";
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

/** One component shows one document after the other. */
const Turning = {
  setup() {
    const page = ref("one");
    const { text, readOnly } = useEditor({ path: () => ["turning", page.value] });
    globalThis.turn = (next) => { page.value = next; };
    return () => h("textarea", { value: text.value, readOnly: readOnly.value, ariaLabel: page.value, onInput: ({ target }) => { text.value = target.value; } });
  },
};

/** The Holdfast comes later than the component. */
const Later = {
  setup() {
    const holdfast = shallowRef();
    const { text, readOnly, autosave } = useEditor({ path: ["later"], holdfast });
    globalThis.give = () => { holdfast.value = createHoldfast({ root: "later" }); };
    return () => {
      Object.assign(globalThis, { autosave: autosave.value, holdfast: holdfast.value });
      return h("textarea", { value: text.value, readOnly: readOnly.value, onInput: ({ target }) => { text.value = target.value; } });
    };
  },
};

/** The Holdfast is replaced by another one. */
const Swapping = {
  setup() {
    const holdfast = shallowRef(globalThis.former);
    const { autosave } = useAutoSave(() => "", { holdfast });
    globalThis.swap = (next) => { holdfast.value = next; };
    return () => {
      globalThis.autosave = autosave.value;
      return h("p");
    };
  },
};

const parts = { Notes, Slow, Broken, Turning, Later, Swapping };
let app;
globalThis.show = (name) => {
  app?.unmount();
  app = name && createApp(parts[name]);
  app?.mount("#app");
};
