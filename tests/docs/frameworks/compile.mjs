// Prints what a component of Vue or Svelte is compiled to: node compile.mjs <file>

import { readFileSync } from "node:fs";

const [file] = process.argv.slice(2);
const source = readFileSync(file, "utf8");

async function vue() {
  const { compileScript, parse } = await import("vue/compiler-sfc");
  const { descriptor, errors } = parse(source, { filename: file });
  if (errors.length > 0) throw errors[0];
  return compileScript(descriptor, { id: "notes", inlineTemplate: true }).content;
}

async function svelte() {
  const { compile } = await import("svelte/compiler");
  return compile(source, { filename: file, generate: "client" }).js.code;
}

process.stdout.write(await (file.endsWith(".vue") ? vue() : svelte()));
