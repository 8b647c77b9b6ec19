// Writes without AutoSave, like an editor that was suspended during a save and wakes when another client is the editor.

const encoder = new TextEncoder();

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

export const sha256 = async (text) => hex(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));

/** CRC-32 as in IEEE 802.3. */
function crc32(bytes) {
  let c = ~0;
  for (const b of bytes) {
    c ^= b;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  }
  return (~c >>> 0).toString(16).padStart(8, "0");
}

async function put(folder, name, text) {
  const file = await folder.getFileHandle(name, { create: true });
  const writable = await file.createWritable();
  await writable.write(text);
  await writable.close();
}

/** Writes a generation and an index of it, under a number that AutoSave does not come to. */
async function toFiles(root, token, text) {
  const directory = await (await navigator.storage.getDirectory()).getDirectoryHandle(root);
  const folder = await directory.getDirectoryHandle("autosave");
  const id = `${Date.now()}-${token}`;
  const index = `{"format":1,"generations":[{"id":"${id}","bytes":${encoder.encode(text).length},"sha256":"${await sha256(text)}"}`;
  await put(await folder.getDirectoryHandle("history"), id, text);
  await put(await folder.getDirectoryHandle("index"), `${token}-999999.json`, `${index}],"crc32":"${crc32(encoder.encode(index))}"}\n`);
  return "written";
}

async function toServer(url, document, token, text) {
  const { ok, status } = await fetch(`${url}/api/documents/${document}/content`, {
    method: "PUT", body: text, headers: { "Holdfast-Token": token }, signal: AbortSignal.timeout(3000),
  });
  return ok ? "accepted" : status === 403 || status === 409 ? "refused" : "unanswered";
}

/** Writes a text under a token to where a document is kept, and returns what came of it. */
export async function writeLate({ root, server }, token, text) {
  try {
    return await (server ? toServer(server.url, root, token, text) : toFiles(root, token, text));
  } catch (error) {
    console.info("written late:", error);
    return "unanswered";
  }
}
