// The user's sign-in at the server, in the header of the pages that speak with it. It is shown where the server has users.

import { byId, make, setText } from "./dom.js";

interface Account { has_users: boolean; takes_bearer: boolean; has_provider: boolean; signed_in: boolean; user?: string }

const address = "/api/session";

/** Shows who has signed in, with a button to sign in or out. */
export async function showAccount(): Promise<void> {
  const response = await fetch(address, { cache: "no-store" }).catch(() => undefined);
  if (!response?.ok) return; // the page itself says that the server does not answer
  const { has_users, takes_bearer, has_provider, signed_in, user = "" } = await response.json() as Account;
  if (!has_users) return;
  const place = byId("account");
  place.replaceChildren(...(signed_in ? [make("span", "user", "Signed in as ", make("b", "", user))] : []),
    ...(takes_bearer ? [signed_in ? button("Sign out", signOut) : button("Sign in", has_provider ? atProvider : signIn)] : []), problemText("account-problem"));
  place.hidden = false;
}

function problemText(id: string): HTMLElement {
  const text = make("p", "problem");
  text.id = id;
  text.setAttribute("role", "alert");
  return text;
}

function button(text: string, clicked: () => void): HTMLButtonElement {
  const made = make("button", "", text);
  made.type = "button";
  made.addEventListener("click", clicked);
  return made;
}

function atProvider(): void {
  location.assign(`${address}/login?return=${encodeURIComponent(location.pathname + location.search)}`);
}

async function signOut(): Promise<void> {
  const response = await fetch(address, { method: "DELETE" }).catch(() => undefined);
  if (response?.ok) return location.reload(); // with another session, everything on the page begins again
  setText(byId("account-problem"), "You are still signed in: the server does not answer. Try again.");
}

/** Asks for the key in a dialog. The key is sent once, in a header; the server answers with a cookie that scripts cannot read. */
function signIn(): void {
  const field = make("input");
  Object.assign(field, { type: "password", id: "key", required: true, autocomplete: "off", spellcheck: false });
  const label = make("label", "", "API key or token");
  label.htmlFor = field.id;
  const problem = problemText("key-problem");
  const send = make("button", "primary", "Sign in");
  const form = make("form", "", make("h2", "", "Sign in"), label, field, problem, make("p", "row", send, button("Cancel", () => dialog.close())));
  const dialog = make("dialog", "sign-in", form);
  dialog.addEventListener("close", () => dialog.remove());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send.disabled = true;
    void show(field.value.trim()).then((failure) => {
      if (failure === undefined) return location.reload();
      setText(problem, failure);
      send.disabled = false;
      field.select();
    });
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Shows the server a key. Returns why it was refused. */
async function show(key: string): Promise<string | undefined> {
  try {
    const response = await fetch(address, { method: "POST", headers: { Authorization: `Bearer ${key}` } });
    if (response.ok) return undefined;
    return response.status === 401 ? "The server does not know this key." : `The server refuses: ${(await response.json() as { message: string }).message}`;
  } catch {
    return "The server could not be asked. Is the key complete, and is the server there?";
  }
}
