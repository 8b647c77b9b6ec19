// A program whose client is generated from the server's description: it edits a document under its lock.
import createClient from "openapi-fetch";
import type { components, paths } from "./holdfast.js";

const server = process.argv[2];
const client = createClient<paths>({ baseUrl: server, headers: { Authorization: "Bearer a secret of this program" } });

function must<T>(what: string, { data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(`${what}: ${JSON.stringify(error)}`);
  return data;
}

const document = "from-typescript";
const grant = must("lock", await client.POST("/api/documents/{document}/lock", { params: { path: { document } }, body: { holder_name: "TypeScript" } }));
const token: number = grant.token;
must("save", await client.PUT("/api/documents/{document}/content", {
  params: { path: { document }, header: { "Holdfast-Token": token } },
  body: "typed", bodySerializer: (text: string) => text, headers: { "Content-Type": "application/octet-stream" },
}));
const text = must<string>("read", await client.GET("/api/documents/{document}/content", { params: { path: { document } }, parseAs: "text" }));

const shown = must("show", await client.GET("/api/documents/{document}/lock", { params: { path: { document } } }));
const holder = shown.is_locked ? shown.holder_name : "nobody";

const lease = must("place", await client.POST("/api/locks", { body: { paths: [["book", "chapter 1"]], mode: "shared", ttl_ms: 5000 } }));
must("renew", await client.PUT("/api/locks/{lease_id}", { params: { path: { lease_id: lease.lease_id } } }));
must("release", await client.DELETE("/api/locks/{lease_id}", { params: { path: { lease_id: lease.lease_id } } }));

const missing = await client.GET("/api/documents/{document}/history", { params: { path: { document: "nothing" } } });
const code: components["schemas"]["ErrorCode"] | undefined = missing.error?.error;

const other = createClient<paths>({ baseUrl: server, headers: { Authorization: "Bearer another secret" } });
const denied = await other.POST("/api/documents/{document}/lock", { params: { path: { document } } });
must("unlock", await client.DELETE("/api/documents/{document}/lock", { params: { path: { document }, header: { "Holdfast-Token": token } } }));
console.log(JSON.stringify({ text, holder, code, denied: denied.error?.error }));
