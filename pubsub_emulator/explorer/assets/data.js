// Parts of the run, opened when they are first asked for.

const opened = new Map();

function part(name) {
  if (!opened.has(name)) {
    opened.set(name, open(document.getElementById(name)));
  }
  return opened.get(name);

  async function open(element) {
    const text = atob(element.textContent);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) {
      bytes[at] = text.charCodeAt(at);
    }
    element.remove();
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }
}

// The index, with names for what stands in its rows by position.
class Run {
  constructor(index) {
    Object.assign(this, index);
    this.chainOf = new Map(this.chains.map((chain) => [chain.id, chain]));
    for (const chain of this.chains) {
      chain.blocks = [];
    }
    this.candidates = index.candidates.map((row, at) => {
      const [
        para,
        number,
        relay,
        parent,
        slot,
        verdict,
        hash,
        strategy,
        nodes,
        used,
        budget,
        stopped,
        keys,
      ] = row;
      const chain = this.chainOf.get(para);
      const block = {
        at,
        chain,
        number,
        relay,
        parent,
        slot,
        verdict,
        hash,
        nodes,
        used,
        budget,
        stopped,
        keys,
      };
      block.strategy = strategy === null ? null : this.strategies[strategy];
      block.place = chain.blocks.length;
      block.author = chain.collators.length ? slot % chain.collators.length : 0;
      chain.blocks.push(block);
      return block;
    });
    this.relayAt = new Map(this.relay.map((block, at) => [block.number, { ...block, at }]));
  }

  async detail(block) {
    const rows = await part(`d${block.chain.id}-${Math.floor(block.place / this.parts.details)}`);
    return rows[block.place % this.parts.details];
  }

  async relayDetail(block) {
    const rows = await part(`r${Math.floor(block.at / this.parts.relay)}`);
    return rows[block.at % this.parts.relay];
  }

  async node(number) {
    const rows = await part(`n${Math.floor(number / this.parts.nodes)}`);
    const [hash, length, bytes] = rows[number % this.parts.nodes];
    return { hash, length, bytes };
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

// Words and elements.

function short(hex) {
  return hex.length <= 16 ? `0x${hex}` : `0x${hex.slice(0, 8)}…${hex.slice(-4)}`;
}

function bytes(count) {
  if (Math.abs(count) < 1024) {
    return `${count} B`;
  }
  return count < 1_048_576
    ? `${(count / 1024).toFixed(1)} KiB`
    : `${(count / 1_048_576).toFixed(2)} MiB`;
}

function percent(share, whole) {
  const found = whole ? (100 * share) / whole : 0;
  return found > 0 && found < 1 ? "under 1 %" : `${Math.round(found)} %`;
}

function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) {
      made.addEventListener(key.slice(2), value);
    } else if (key === "style") {
      made.style.cssText = value; // a strict policy lets no attribute of that name in
    } else if (value !== null && value !== undefined) {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function escaped(text) {
  return String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
