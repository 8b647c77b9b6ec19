// The room page: everybody answers, and nobody sees another answer until all have answered. Open it twice.

import { showAccount } from "./account.js";
import { byId, icon, make, setAttribute, setText } from "./dom.js";
import { loadName, saveName, shortName } from "./names.js";
import { RoomClient } from "./room-client.js";
import { hasAnswered, type Participant, type Room } from "./room-protocol.js";

const lobby = byId<HTMLFormElement>("lobby");
const reply = byId<HTMLFormElement>("reply");
const nameField = byId<HTMLInputElement>("name");
const replyField = byId<HTMLInputElement>("reply-text");
const buttons = {
  enter: byId<HTMLButtonElement>("enter"),
  createInstead: byId<HTMLButtonElement>("create-instead"),
  send: byId<HTMLButtonElement>("send"),
  takeBack: byId<HTMLButtonElement>("take-back"),
  newRound: byId<HTMLButtonElement>("new-round"),
  copy: byId<HTMLButtonElement>("copy"),
};

nameField.value = shortName(loadName());

void showAccount();
const client = new RoomClient(show);
let announced = "";
let sent: string | undefined; // an answer that the server may not have
show();

interface Telling { kind: "opening" | "free" | "waiting" | "holding" | "readonly"; title: string; explain: string }

function show(): void {
  const { state } = client;
  const telling = tell();
  document.body.dataset["kind"] = telling.kind;
  setAttribute(byId("status"), "data-kind", telling.kind);
  setText(byId("answer-title"), telling.title);
  setText(byId("explain"), telling.explain);
  announce(`${telling.title} ${telling.explain}`);
  document.title = state.room ? `${counted(state.room)} · Room · Holdfast` : "Room · Holdfast";

  const invited = invitation() !== "" && state.problem !== "room_not_found" && state.problem !== "room_closed";
  lobby.hidden = state.room !== undefined;
  setText(buttons.enter, invited ? "Enter the room" : "Create a room");
  buttons.createInstead.hidden = !invited;
  buttons.enter.disabled = buttons.createInstead.disabled = !state.connected || state.entering;
  reply.hidden = byId("table").hidden = byId("dial").hidden = state.room === undefined;
  if (state.room) showRoom(state.room);
}

function tell(): Telling {
  const { connected, room, problem, entering } = client.state;
  if (room) {
    if (!connected || entering) return { kind: "readonly", title: "Connection lost.", explain: "Coming back to your seat." };
    return room.isOpen ? tellOpen(room) : tellHidden(room);
  }
  if (!connected) return { kind: "opening", title: "One moment.", explain: "Connecting to the server." };
  if (entering) return { kind: "opening", title: "One moment.", explain: "Finding your seat." };
  switch (problem) {
    case undefined:
      return invitation() === ""
        ? { kind: "free", title: "Start a room.", explain: "Ask a question, send the link. Nobody sees another’s answer until all have answered." }
        : { kind: "free", title: "You are invited.", explain: "Enter under a name; the others see it." };
    case "room_not_found":
      return { kind: "readonly", title: "This room is gone.", explain: "Its last participant left, or it was idle for too long. Start another." };
    case "room_closed":
      return { kind: "readonly", title: "The room was closed.", explain: "Nothing happened in it for too long. Start another." };
    case "removed":
      return { kind: "readonly", title: "You are out.", explain: "Another tab took your seat, or the server lost the connection to you. Enter again." };
    case "room_full":
      return { kind: "readonly", title: "The room is full.", explain: "Wait until somebody leaves, or start another." };
    default:
      return { kind: "readonly", title: "That did not work.", explain: `The server said “${problem}”. Try again.` };
  }
}

function tellOpen(room: Room): Telling {
  const count = room.participants.length;
  return { kind: "holding", title: "Yes. Here they are.", explain: count === 1 ? "You are alone here: send the link." : `All ${count} answers are on the table.` };
}

function tellHidden(room: Room): Telling {
  const thinking = room.participants.filter((participant) => !hasAnswered(participant));
  const others = thinking.filter((participant) => !participant.isMe).map((participant) => participant.name);
  const named = others.length > 3 ? [...others.slice(0, 3), `${others.length - 3} more`] : others;
  const waitingFor = named.length > 0 ? `Waiting for ${new Intl.ListFormat("en").format(named)}.` : "";
  return thinking.some((participant) => participant.isMe)
    ? { kind: "waiting", title: "Not yet. Your turn.", explain: waitingFor || "Everybody else has answered." }
    : { kind: "waiting", title: "Not yet.", explain: waitingFor };
}

function counted(room: Room): string {
  return `${room.participants.filter(hasAnswered).length} of ${room.participants.length}`;
}

function showRoom(room: Room): void {
  const own = room.participants.find((participant) => participant.isMe);
  const done = room.participants.filter(hasAnswered).length;
  if (sent !== undefined && own?.answer === sent) {
    if (replyField.value.trim() === sent) replyField.value = "";
    sent = undefined;
  }
  setText(byId("dial-value"), counted(room));
  setAttribute(byId("arc"), "stroke-dasharray", `${(1000 * done) / room.participants.length} 1000`);

  const ready = client.state.connected && !client.state.entering;
  setText(buttons.send, own && hasAnswered(own) ? "Change" : "Answer");
  buttons.send.disabled = !ready;
  buttons.takeBack.disabled = !ready || !own || !hasAnswered(own);
  buttons.newRound.disabled = !ready || done === 0;
  buttons.newRound.classList.toggle("primary", room.isOpen);
  buttons.send.classList.toggle("primary", !room.isOpen);
  setText(byId("reply-hint"), room.isOpen ? "A new round takes everybody’s answer back." : "Only you see it until everybody has answered.");

  setAttribute(byId("second-tab"), "href", `/room.html#${room.id}`);
  setText(byId("table-title"), `In this room: ${room.participants.length}`);
  showPeople(room);
}

/** Seats stay while the same people are in them, so that nothing flickers and a card turns over only once. */
function showPeople(room: Room): void {
  const list = byId("people");
  const before = new Map([...list.children].map((seat) => [(seat as HTMLElement).dataset["key"], seat]));
  const seats = room.participants.map((participant) => {
    const key = JSON.stringify([participant.userNumber, participant.name, participant.isMe, participant.answer, hasAnswered(participant), room.isOpen]);
    return before.get(key) ?? seat(participant, room.isOpen, key);
  });
  if (seats.length !== list.children.length || seats.some((seat, index) => list.children[index] !== seat)) list.replaceChildren(...seats);
}

function seat(participant: Participant, open: boolean, key: string): HTMLLIElement {
  const name = make("span", "name", participant.name);
  if (participant.isMe) name.append(" ", make("span", "you", "you"));
  const item = make("li", "", name, hand(participant, open));
  item.dataset["key"] = key;
  item.dataset["name"] = participant.name;
  return item;
}

function hand(participant: Participant, open: boolean): HTMLElement {
  if (!hasAnswered(participant)) return make("div", "hand", icon("wait"), "is thinking");
  const { length } = participant.answer;
  const said = make("span", length > 40 ? "said long" : length > 9 ? "said phrase" : "said", participant.answer);
  if (open) return make("div", "hand up", said);
  // A user's own card is hidden from the others but visible to the user.
  return participant.isMe ? make("div", "hand down", said, "only you see it") : make("div", "hand down", icon("hold"), "has answered");
}

/** Announces each change once to users that do not see the page. */
function announce(text: string): void {
  if (text === announced) return;
  announced = text;
  setText(byId("announce"), text);
}

/** The room in this page's address, "" for none. */
function invitation(): string {
  return location.hash.slice(1);
}

lobby.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = nameField.value.trim();
  if (name === "") return;
  saveName(name);
  if (buttons.createInstead.hidden) client.create(name);
  else client.enter(invitation(), name);
});
buttons.createInstead.addEventListener("click", () => {
  if (lobby.reportValidity()) client.create(nameField.value.trim());
});
reply.addEventListener("submit", (event) => {
  event.preventDefault();
  if (replyField.value.trim() === "") return;
  client.answer(sent = replyField.value.trim());
});
buttons.takeBack.addEventListener("click", () => client.clear(false));
buttons.newRound.addEventListener("click", () => {
  client.clear(true);
  replyField.focus();
});
byId("leave").addEventListener("click", () => {
  history.replaceState(null, "", "/room.html");
  client.leave();
  show();
});
buttons.copy.addEventListener("click", () => {
  navigator.clipboard.writeText(location.href).then(
    () => said("Copied"),
    () => said("Copy the address of this page"), // without permission the user can copy the address from the address bar
  );
});

function said(text: string): void {
  setText(buttons.copy, text);
  setTimeout(() => setText(buttons.copy, "Copy the link"), 2000);
}

// A user may paste an invitation into the address bar of an open page.
addEventListener("hashchange", () => {
  if (client.state.room && client.state.room.id !== invitation()) client.leave();
  show();
});
