// The acts by name: a title, the fields of the form, and the action that a filled form makes.

const number = (text) => (/^\d{1,15}$/.test(text.trim()) ? Number(text) : text);
const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

const PUBLISHER = { name: "publisher", label: "Publisher", kind: "publisher" };
const PARA = { name: "para", label: "Chain", kind: "chain" };
const SUBSCRIBER = { name: "para", label: "Subscriber", kind: "subscriber" };
const KEYS = {
  name: "keys",
  label: "Keys",
  kind: "text",
  start: "price",
  hint: "names or 0x…, with commas",
};

export const ACTS = {
  publish: [
    "Publish a value",
    [
      { ...PUBLISHER, name: "para" },
      {
        name: "key",
        label: "Key",
        kind: "text",
        start: "price",
        hint: "a name, or 0x and 64 digits",
      },
      { name: "value", label: "Value", kind: "text", start: "7.42" },
      { name: "ttl", label: "Lifetime in blocks, 0 forever", kind: "number", start: "0" },
    ],
    (form) => ({
      kind: "publish",
      para: form.para,
      key: form.key,
      value: form.value,
      ttl: number(form.ttl),
    }),
  ],
  delete: [
    "Delete keys",
    [{ ...PUBLISHER, name: "para" }, KEYS],
    (form) => ({ kind: "delete", para: form.para, keys: listed(form.keys) }),
  ],
  subscribe: [
    "Subscribe to keys",
    [SUBSCRIBER, PUBLISHER, KEYS],
    (form) => ({
      kind: "add_keys",
      para: form.para,
      publisher: form.publisher,
      keys: listed(form.keys),
    }),
  ],
  unsubscribe: [
    "Unsubscribe from keys",
    [SUBSCRIBER, PUBLISHER, { ...KEYS, start: "", hint: "none: all of them" }],
    (form) => ({
      kind: "drop_keys",
      para: form.para,
      publisher: form.publisher,
      keys: listed(form.keys),
    }),
  ],
  request: [
    "Request relay keys",
    [
      SUBSCRIBER,
      {
        name: "keys",
        label: "Relay keys",
        kind: "text",
        start: "Mmr.RootHash",
        hint: "Pallet.Item, Paras.Heads(2000), 0x… or child:TRIE/KEY, with spaces; none: no keys",
      },
    ],
    (form) => ({
      kind: "request_keys",
      para: form.para,
      keys: form.keys.split(/\s+/).filter(Boolean),
    }),
  ],
  register: [
    "Register a publisher",
    [
      { name: "para", label: "Parachain", kind: "number", start: "2001" },
      {
        name: "deposit",
        label: "Deposit in plancks, empty: the usual one",
        kind: "number",
        start: "",
      },
    ],
    (form) => ({
      kind: "register",
      para: number(form.para),
      ...(form.deposit === "" ? {} : { deposit: number(form.deposit) }),
    }),
  ],
  deregister: [
    "Remove a publisher",
    [{ name: "para", label: "Parachain", kind: "number", start: "2001" }],
    (form) => ({ kind: "deregister", para: number(form.para) }),
  ],
  limit: [
    "Change a limit",
    [
      SUBSCRIBER,
      {
        name: "name",
        label: "Limit",
        kind: "choice",
        choices: ["max_pov_size", "max_cache_bytes", "max_trie_depth"],
      },
      { name: "value", label: "Value", kind: "number", start: "8388608" },
    ],
    (form) => ({
      kind: "limit",
      para: form.para,
      name: form.name,
      value: number(form.value),
    }),
  ],
  cheat: [
    "Give a collator a cheat",
    [
      SUBSCRIBER,
      { name: "strategy", label: "Cheat", kind: "strategy" },
      {
        name: "collator",
        label: "Collator, empty: whose turn is next",
        kind: "number",
        start: "",
      },
    ],
    (form) => ({
      kind: "cheat",
      para: form.para,
      strategies: [form.strategy],
      ...(form.collator === "" ? {} : { collator: number(form.collator) }),
    }),
  ],
  honest: ["Make collators honest", [PARA], (form) => ({ kind: "honest", para: form.para })],
  offline: ["Take a chain offline", [PARA], (form) => ({ kind: "offline", para: form.para })],
  online: [
    "Bring a chain back",
    [PARA],
    (form) => ({ kind: "offline", para: form.para, offline: false }),
  ],
};
