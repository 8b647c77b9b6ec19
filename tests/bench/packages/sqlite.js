import start from "@sqlite.org/sqlite-wasm";

const { oo1 } = await start();
const db = new oo1.DB(":memory:");
db.exec("create table texts (text)");
db.exec({ sql: "insert into texts values (?)", bind: ["typed"] });
globalThis.usable();
