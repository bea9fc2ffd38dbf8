// Format Lua with the WebAssembly build of stylua, the one that npm carries whole.
// usage: node stylua.mjs MODULE_DIR [--check] FILE...
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";

const [modules, ...rest] = process.argv.slice(2);
const check = rest.includes("--check");
const stylua = createRequire(`${modules}/`)("@johnnymorganz/stylua");

const wanted = Object.fromEntries(
  readFileSync(".stylua.toml", "utf8")
    .split("\n")
    .map((line) => line.match(/^(\w+) *= *"?(\w+)"?/))
    .filter(Boolean)
    .map(([, key, value]) => [key, value]),
);

// formatCode consumes its configuration, so every file gets one of its own.
function configuration() {
  const config = stylua.Config.new();
  config.column_width = Number(wanted.column_width);
  config.indent_type = stylua.IndentType[wanted.indent_type];
  config.indent_width = Number(wanted.indent_width);
  config.quote_style = stylua.QuoteStyle[wanted.quote_style];
  config.call_parentheses = stylua.CallParenType[wanted.call_parentheses];
  return config;
}

let wrong = 0;
for (const file of rest.filter((argument) => !argument.startsWith("--"))) {
  const before = readFileSync(file, "utf8");
  const after = stylua.formatCode(before, configuration(), undefined, stylua.OutputVerification.Full);
  if (after === before) continue;
  if (!check) writeFileSync(file, after);
  else {
    const was = before.split("\n");
    const line = after.split("\n").findIndex((text, at) => text !== was[at]);
    console.error(`${file}:${line + 1}: not formatted (make fmt mends it)`);
    wrong = 1;
  }
}
process.exit(wrong);
