// smoldot's tries as chopsticks-executor brings them, asked line by line: JSON in, JSON out.
//
//   {"entries": [[key, value], …]}            kept for "root"
//   {"root_hash": …, "nodes": […]}            kept for "read"
//   {"run": "root" | "read"}               -> {"ms": CPU time of this process, "answer": the root,
//                                              or how many keys}
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.argv[2]}/`));
const { calculate_state_root, decode_proof } = require("@acala-network/chopsticks-executor");

const kept = {};
const work = {
  root: async () => await calculate_state_root(kept.entries, 1),
  read: async () => (await decode_proof(kept.root_hash, kept.nodes)).length,
};
for await (const line of createInterface({ input: process.stdin })) {
  const { run, ...given } = JSON.parse(line);
  Object.assign(kept, given);
  if (run === undefined) {
    continue;
  }
  const before = process.cpuUsage();
  const answer = await work[run]();
  const { user, system } = process.cpuUsage(before);
  console.log(JSON.stringify({ ms: (user + system) / 1000, answer }));
}
