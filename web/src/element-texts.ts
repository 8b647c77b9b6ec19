// The texts of <holdfast-status> in English. The attribute text-<name> replaces one; {name}, {count} and {time} stand for values.

export const texts = {
  none: "No document is open.",
  loading: "One moment.",
  disabled: "Saving is switched off.",
  editing: "You edit.",
  reading: "{name} edits.",
  "reading-unknown": "Another tab edits.",
  forbidden: "The server does not let you edit.",
  asking: "Asking to edit …",
  saved: "Saved at {time}.",
  saving: "Saving …",
  unsaved: "Not saved yet.",
  offline: "Offline. Your text is kept in this browser.",
  failed: "Saving failed. Holdfast tries again.",
  ask: "Ask to edit",
  "take-over": "Take over",
  draft: "There is a draft to decide about.",
  drafts: "There are {count} drafts to decide about.",
  "drafts-title": "Not saved",
  empty: "An empty text",
  bytes: "{count} bytes",
  use: "Use this",
  keep: "Keep in the history",
  discard: "Discard",
  "handover-refused": "The page that edits refused.",
  "handover-busy": "Another page asked first.",
  "handover-timeout": "The page that edits does not answer. You can take over; its unsaved text becomes a draft.",
} as const;

export type TextName = keyof typeof texts;
