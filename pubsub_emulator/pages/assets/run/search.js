// Search: by block number, chain, publisher, key, hash, collator, verdict, strategy.

import { counted, short } from "../words.js";
import { hasPart, part } from "./records.js";

// What a query finds: lines to choose from, and the names of all squares that it lights.
export function search(run, text) {
  const query = text.trim().toLowerCase();
  const lines = [];
  const lit = [];
  if (!query) {
    return null;
  }
  const number = /^\d+$/.test(query) ? Number(query) : null;
  const hex = query.replace(/^0x/, "");
  const isHex =
    /^[0-9a-f]{3,64}$/.test(hex) && (query.startsWith("0x") || number === null || hex.length >= 6);

  if (number !== null) {
    if (run.relayAt.has(number)) {
      add(`r${number}`, `relay block ${number}`, "");
    }
    for (const block of run.candidates) {
      if (block.number === number) {
        candidate(block, "");
      }
    }
  }
  for (const chain of run.chains) {
    if (number === chain.id || chain.name?.toLowerCase().includes(query)) {
      lines.push({
        name: chain.blocks.length ? `c${chain.blocks[0].at}` : null,
        chain: chain.id,
        label: `chain ${run.chainName(chain.id)}`,
        note: counted(chain.blocks.length, "candidate"),
      });
      for (const block of chain.blocks) {
        lit.push(`c${block.at}`);
      }
    }
    chain.collators.forEach((key, at) => {
      if (!isHex || !key.startsWith(hex)) {
        return;
      }
      for (const block of chain.blocks) {
        if (block.author === at) {
          candidate(block, `turn of collator ${at + 1}, ${short(key)}`);
        }
      }
    });
  }
  if (isHex) {
    for (const block of run.candidates) {
      if (block.hash.startsWith(hex)) {
        candidate(block, `0x${block.hash}`);
      }
    }
    for (const block of run.relay) {
      if (block.hash.startsWith(hex) || block.root.startsWith(hex)) {
        add(
          `r${block.number}`,
          `relay block ${block.number}`,
          `0x${block.hash.startsWith(hex) ? block.hash : block.root}`,
        );
      }
    }
  }
  const keys = new Set();
  run.keys.forEach(([para, key, name], at) => {
    if (
      para === number ||
      (isHex && key.startsWith(hex)) ||
      (name && name.toLowerCase() === query) ||
      `${para} ${name}` === query
    ) {
      keys.add(at);
    }
  });
  if (keys.size) {
    const named = (block) => block.keys.filter((key) => keys.has(key));
    for (const block of run.relay) {
      const found = named(block);
      if (found.length) {
        add(`r${block.number}`, `relay block ${block.number}`, `publishes ${list(found)}`);
      }
    }
    for (const block of run.candidates) {
      const found = named(block);
      if (found.length) {
        candidate(block, `is delivered ${list(found)}`);
      }
    }
  }
  for (const block of run.candidates) {
    const words = [
      block.verdict || "accepted valid",
      block.strategy || "",
      block.verdict ? "refused" : "",
      block.stopped ? "stopped" : "",
    ]
      .join(" ")
      .toLowerCase();
    if (query.length > 2 && number === null && words.includes(query)) {
      candidate(block, block.strategy ? `by ${block.strategy}` : "");
    }
  }
  return { lines, lit };

  function add(name, label, note) {
    lit.push(name);
    lines.push({ name, label, note });
  }

  function candidate(block, why) {
    add(
      `c${block.at}`,
      `${run.chainName(block.chain.id)} · block ${block.number}`,
      [block.verdict, why].filter(Boolean).join(", "),
    );
  }

  function list(found) {
    return (
      found
        .slice(0, 3)
        .map((key) => run.keyName(key).name)
        .join(", ") + (found.length > 3 ? ` and ${found.length - 3} more` : "")
    );
  }
}

// Blocks in whose proof a node's or value's hash begins so: every part has to be opened for it.
export async function searchNodes(run, text, stillWanted) {
  const hex = text.trim().toLowerCase().replace(/^0x/, "");
  if (!/^[0-9a-f]{8,64}$/.test(hex)) {
    return [];
  }
  const found = new Map();
  for (let shard = 0; hasPart(`n${shard}`); shard++) {
    const rows = await part(`n${shard}`);
    if (!stillWanted()) {
      return [];
    }
    for (const [at, [hash]] of rows.entries()) {
      if (hash.startsWith(hex)) {
        found.set(shard * run.parts.nodes + at, hash);
      }
    }
  }
  const lines = [];
  if (!found.size) {
    return lines;
  }
  for (const block of run.candidates) {
    const detail = await run.source.detail(block);
    if (!stillWanted()) {
      return [];
    }
    const number = detail.nodes.find((each) => found.has(each));
    if (number !== undefined) {
      lines.push({
        name: `c${block.at}`,
        label: `${run.chainName(block.chain.id)} · block ${block.number}`,
        note: `draws node ${short(found.get(number))}`,
      });
    }
  }
  return lines;
}
