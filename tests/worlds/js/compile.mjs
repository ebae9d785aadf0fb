// Compiles the Solidity source on standard input and writes its ABI and bytecode to standard
// output.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const solc = createRequire(`${process.argv[2]}/`)("solc");
const source = readFileSync(0, "utf8");
const settings = {
  evmVersion: "istanbul",
  metadata: { bytecodeHash: "none", appendCBOR: false },
  optimizer: { enabled: true, runs: 200 },
  viaIR: true,
  outputSelection: { "*": { DomeEvents: ["abi", "evm.bytecode.object"] } },
};
const input = {
  language: "Solidity",
  sources: { "DomeEvents.sol": { content: source } },
  settings,
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
for (const error of output.errors ?? []) {
  console.error(error.formattedMessage);
}
const made = output.contracts?.["DomeEvents.sol"]?.DomeEvents;
if (!made) {
  process.exit(1);
}
console.log(
  JSON.stringify({
    compiler: solc.version(),
    abi: made.abi,
    bytecode: `0x${made.evm.bytecode.object}`,
  }),
);
