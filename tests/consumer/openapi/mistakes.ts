// The generated types refuse each of these calls.
import createClient from "openapi-fetch";
import type { paths } from "./holdfast.js";

const client = createClient<paths>();
// @ts-expect-error there is no such call
void client.GET("/api/nothing");
// @ts-expect-error a write needs the token
void client.PUT("/api/documents/{document}/content", { params: { path: { document: "a" } }, body: "text" });
// @ts-expect-error there is no such mode
void client.POST("/api/locks", { body: { paths: [["a"]], mode: "both" } });
// @ts-expect-error a broken lock needs a reason
void client.POST("/api/documents/{document}/lock/break", { params: { path: { document: "a" } }, body: {} });
