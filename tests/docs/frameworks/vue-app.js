import { createApp } from "vue";
import Notes from "./Notes.vue";

const parts = { Notes };
let app;
globalThis.show = (name) => {
  app?.unmount();
  app = name && createApp(parts[name]);
  app?.mount("#app");
};
