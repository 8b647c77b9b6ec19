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

const parts = { Notes, Slow };
let app;
globalThis.show = (name) => {
  app?.unmount();
  app = name && createApp(parts[name]);
  app?.mount("#app");
};
