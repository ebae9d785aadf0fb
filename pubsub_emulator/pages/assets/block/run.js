// Some blocks of a network: an index of them, and where their details come from.

import { short } from "../words.js";

const FIELDS = [
  "para",
  "number",
  "relay",
  "parent",
  "slot",
  "verdict",
  "hash",
  "strategy",
  "nodes",
  "used",
  "budget",
  "stopped",
  "keys",
];

// The index, with names for the fields that stand in its rows by position. `source` has what is
// read when it is looked at: `detail(block)`, `relayDetail(block)`, `node(number)`.
export class Run {
  constructor(index, source) {
    Object.assign(this, index);
    this.source = source;
    this.chainOf = new Map(this.chains.map((chain) => [chain.id, chain]));
    for (const chain of this.chains) {
      chain.blocks = [];
    }
    this.candidates = index.candidates.map((row, at) => this.#block(row, at));
    this.relayAt = new Map(this.relay.map((block, at) => [block.number, { ...block, at }]));
  }

  #block(row, at) {
    const block = Object.fromEntries(FIELDS.map((name, place) => [name, row[place]]));
    const chain = this.chainOf.get(block.para);
    Object.assign(block, { at, chain, place: chain.blocks.length });
    block.strategy = block.strategy === null ? null : this.strategies[block.strategy];
    block.author = chain.collators.length ? block.slot % chain.collators.length : 0;
    chain.blocks.push(block);
    return block;
  }

  keyName(number) {
    const [para, key, name] = this.keys[number];
    return { para, key, name: name || short(key) };
  }

  // Whether there is such a block: `c` and a candidate's place in the run, or `r` and a relay
  // block's number.
  has(name) {
    const number = Number(name.slice(1));
    if (/^c\d+$/.test(name)) {
      return number < this.candidates.length;
    }
    return /^r\d+$/.test(name) && this.relayAt.has(number);
  }

  // The candidate with that name; `null` if it is a relay block's.
  candidate(name) {
    return name?.[0] === "c" ? this.candidates[Number(name.slice(1))] : null;
  }

  chainName(id) {
    const chain = this.chainOf.get(id);
    return chain?.name ? `${id} ${chain.name}` : String(id);
  }
}
