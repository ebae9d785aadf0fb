// The records inside of the page, opened when they are first asked for.

const opened = new Map();

export function hasPart(name) {
  return opened.has(name) || document.getElementById(name) !== null;
}

export function part(name) {
  if (!opened.has(name)) {
    opened.set(name, unpacked(document.getElementById(name)));
  }
  return opened.get(name);
}

async function unpacked(element) {
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) {
    bytes[at] = text.charCodeAt(at);
  }
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Where a run's details are, in parts of the sizes that its index has.
export function records({ parts }) {
  const row = async (name, at, most) => (await part(`${name}${Math.floor(at / most)}`))[at % most];
  return {
    detail: (block) => row(`d${block.chain.id}-`, block.place, parts.details),
    relayDetail: (block) => row("r", block.at, parts.relay),
    node: async (number) => {
      const [hash, length, bytes] = await row("n", number, parts.nodes);
      return { hash, length, bytes };
    },
  };
}
