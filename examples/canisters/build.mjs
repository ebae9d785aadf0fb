// Compiles an actor: node build.mjs <folder of npm's modules> <Actor.mo> <out.wasm>
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

const [modules, source, out] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const { default: motoko } = require("motoko");
motoko.loadPackage(require("motoko/packages/latest/core.json"));
for (const name of new Set(["Icrc72.mo", basename(source)])) {
  motoko.write(name, readFileSync(join(dirname(source), name), "utf8"));
}
const errors = motoko.check(basename(source)).filter((each) => each.severity === 1);
for (const { source: file, range, message } of errors) {
  console.error(`${file}:${range.start.line + 1}:${range.start.character + 1}: ${message}`);
}
if (errors.length) process.exit(1);
writeFileSync(out, motoko.wasm(basename(source), "ic").wasm);
