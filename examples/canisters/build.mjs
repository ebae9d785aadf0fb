// Compiles an actor: node build.mjs <folder of npm's modules> <Actor.mo> <out.wasm> <flags of its
// memory> ...

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";

const [modules, source, out, ...flags] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const { default: motoko } = require("motoko");
for (const flag of flags) {
  motoko.compiler.gcFlags(flag);
}
motoko.loadPackage(require("motoko/packages/latest/core.json"));
for (const name of readdirSync(dirname(source))) {
  motoko.write(name, readFileSync(join(dirname(source), name), "utf8"));
}
try {
  writeFileSync(out, motoko.wasm(basename(source), "ic").wasm);
} catch {
  const errors = motoko.check(basename(source)).filter((each) => each.severity === 1);
  for (const { source: file, range, message } of errors) {
    console.error(`${file}:${range.start.line + 1}:${range.start.character + 1}: ${message}`);
  }
  process.exit(1);
}
