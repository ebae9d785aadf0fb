// More scenarios of polkadot-api against a node in `instant` mode with --dev.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { createClient as createSubstrateClient } from "@polkadot-api/substrate-client";
import { createClient } from "polkadot-api";
import { getWsProvider } from "polkadot-api/ws-provider/node";
import { proxy, until } from "./proxy.mjs";
import { run } from "./run.mjs";

const IDLE = 120_000;
const here = dirname(createRequire(import.meta.url).resolve("./package.json"));
const start = promisify(execFile);

const TYPED = `
import { relay } from '@polkadot-api/descriptors';
import { createClient } from 'polkadot-api';
import { getWsProvider } from 'polkadot-api/ws-provider/node';

declare const process: { argv: string[] };
const client = createClient(getWsProvider(process.argv[2]!));
const api = client.getTypedApi(relay);
const alice = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const account = await api.query.System.Account.getValue(alice);
const free: bigint = account.data.free;
const prefix: number = await api.constants.System.SS58Prefix();
const tx = api.tx.Balances.transfer_keep_alive({
  dest: { type: 'Id', value: alice },
  value: 1n,
});
console.log(JSON.stringify([free > 0n, prefix, (await tx.getEncodedData()).asHex().slice(0, 6)]));
client.destroy();
`;

// A folder in which `papi add` can work, and npm as it looks for it; both come with this Node.
async function project() {
  const place = await mkdtemp(join(tmpdir(), "papi-"));
  const npm = join(
    dirname(process.execPath),
    "..",
    "lib",
    "node_modules",
    "npm",
    "bin",
    "npm-cli.js",
  );
  await writeFile(
    join(place, "npm"),
    `#!/bin/sh\nexec "${process.execPath}" "${npm}" "$@" --prefer-offline --ignore-scripts\n`,
  );
  await chmod(join(place, "npm"), 0o755);
  const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const wanted = { "polkadot-api": dependencies["polkadot-api"] }; // npm would take the newest
  const described = { name: "typed", private: true, type: "module", dependencies: wanted };
  await writeFile(join(place, "package.json"), JSON.stringify(described));
  return place;
}

const CHILD = `0x${Buffer.from(":child_storage:default:pubsub").toString("hex")}e8030000`;
const BARE_CHILD = `0x${Buffer.from("pubsub").toString("hex")}e8030000`; // as chainHead names it

export const scenarios = {
  // 9: a map in pages, a double map, a value, a default, an absent key
  async maps(url) {
    const client = createClient(getWsProvider(url));
    const { query } = client.getUnsafeApi();
    await client._request("pubsub_publish", [1000, "with a lifetime", "0x01", 50]);
    await client._request("dev_newBlock", [{ count: 3 }]);
    const rows = await query.Broadcaster.TtlData.getEntries(1000, { at: "best" });
    assert.equal(rows.length, 1);
    assert.deepEqual(
      await query.Broadcaster.TtlData.getValue(...rows[0].keyArgs, { at: "best" }),
      rows[0].value,
    );
    assert.equal(await query.Broadcaster.RegisteredPublishers.getValue(7), undefined);
    assert.ok((await query.System.Account.getEntries()).length > 10);
    client.destroy();
  },

  // 10: a publisher's child trie, by the library below
  async childTrie(url) {
    const client = createClient(getWsProvider(url));
    await client._request("dev_newBlock", [{ count: 3 }]);
    const published = await client._request("childstate_getKeys", [CHILD, "0x"]);
    const below = createSubstrateClient(getWsProvider(url));
    const { hash } = await client.getFinalizedBlock();
    const [root, rows] = await new Promise((done, fail) => {
      const follow = below.chainHead(
        true,
        async (event) => {
          if (event.type !== "initialized") {
            return;
          }
          const found = await follow.storage(hash, "value", CHILD, null);
          const found2 = await follow.storage(hash, "descendantsValues", "0x", BARE_CHILD);
          follow.unfollow();
          done([found, found2]);
        },
        fail,
      );
    });
    assert.equal(root, await client._request("state_getStorage", [CHILD, hash]));
    assert.deepEqual(
      rows.map((row) => row.key),
      await client._request("childstate_getKeys", [CHILD, "0x", hash]),
    );
    for (const { key, value } of rows) {
      assert.equal(value, await client._request("childstate_getStorage", [CHILD, key, hash]));
    }
    assert.ok(published.length >= 4);
    below.destroy();
    client.destroy();
    return rows.length;
  },

  // 4: two minutes in which nothing happens, and still the same connection
  async idle(url) {
    const way = await proxy(url);
    const client = createClient(getWsProvider(way.url));
    await client._request("dev_setBlockBuildMode", ["Manual"]);
    const blocks = [];
    const watched = client.finalizedBlock$.subscribe((block) => blocks.push(block.number));
    const { number } = await client._request("chain_getHeader", []);
    const began = Number.parseInt(number, 16);
    await until(() => blocks.at(-1) === began, "the newest block");
    const known = [...blocks];
    await new Promise((done) => {
      setTimeout(done, IDLE);
    });
    assert.equal(way.opened(), 1);
    assert.deepEqual(blocks, known);
    await client._request("dev_newBlock", []);
    await until(() => blocks.at(-1) === began + 1, "the next block");
    assert.equal(way.opened(), 1);
    await client._request("dev_setBlockBuildMode", ["Batch"]);
    watched.unsubscribe();
    client.destroy();
    way.end();
  },

  // 5: `papi add`, and a program that is typed by what it wrote
  async added(url) {
    const place = await project();
    try {
      const env = {
        ...process.env,
        PATH: [place, dirname(process.execPath), process.env.PATH].join(delimiter),
      };
      const papi = join(here, "node_modules", "polkadot-api", "bin", "cli.mjs");
      await start(process.execPath, [papi, "add", "relay", "-w", url], { cwd: place, env });
      const { relay } = JSON.parse(
        await readFile(join(place, ".papi", "polkadot-api.json"), "utf8"),
      ).entries;
      const client = createClient(getWsProvider(url));
      assert.equal(relay.genesis, await client._request("chain_getBlockHash", [0]));
      assert.equal(relay.codeHash, await client._request("state_getStorageHash", ["0x3a636f6465"]));
      client.destroy();
      const tsc = join(here, "node_modules", "typescript", "bin", "tsc");
      const options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2022",
        "--module",
        "esnext",
        "--moduleResolution",
        "bundler",
        "--lib",
        "es2022,dom",
      ];
      await writeFile(join(place, "typed.ts"), TYPED);
      await start(process.execPath, [tsc, ...options, "typed.ts"], { cwd: place, env });
      await writeFile(join(place, "wrong.ts"), TYPED.replace("data.free", "data.nothing"));
      await assert.rejects(
        start(process.execPath, [tsc, ...options, "wrong.ts"], { cwd: place, env }),
        (error) => /'nothing'/.test(error.stdout),
      );
      const { stdout } = await start(process.execPath, ["typed.ts", url], { cwd: place, env });
      assert.deepEqual(JSON.parse(stdout), [true, 42, "0x0503"]);
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  },

  // 25: the socket is cut; no final block is missed
  async dropped(url) {
    const way = await proxy(url);
    const client = createClient(getWsProvider(way.url));
    const direct = createClient(getWsProvider(url));
    const seen = [];
    const watched = client.finalizedBlock$.subscribe((block) => seen.push(block.number));
    const best = async () =>
      Number.parseInt((await direct._request("chain_getHeader", [])).number, 16);
    await direct._request("dev_newBlock", [{ count: 3 }]);
    await until(async () => seen.at(-1) === (await best()), "the newest block");
    way.drop();
    await direct._request("dev_newBlock", [{ count: 5 }]);
    await until(async () => seen.at(-1) === (await best()), "the blocks after the cut");
    await direct._request("dev_newBlock", [{ count: 3 }]);
    await until(async () => seen.at(-1) === (await best()), "blocks as before");
    assert.ok(way.opened() > 1);
    assert.deepEqual(
      seen,
      Array.from({ length: seen.length }, (_, at) => seen[0] + at),
    );
    watched.unsubscribe();
    client.destroy();
    direct.destroy();
    way.end();
    return seen.length;
  },
};

await run(scenarios, process.argv[2], process.argv.slice(3));
