// polkadot-api by the old methods alone, against a node in `instant` mode with --dev and --finality
// 2.
import assert from "node:assert/strict";
import { Keyring } from "@polkadot/api";
import { withLegacy } from "@polkadot-api/legacy-provider";
import { createClient } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider } from "polkadot-api/ws-provider/node";
import { until } from "./proxy.mjs";
import { run } from "./run.mjs";

const keyring = new Keyring({ type: "sr25519" });
const alice = keyring.addFromUri("//Alice");
const bob = keyring.addFromUri("//Bob");

// Blocks all the time: this provider begins with the second one after it connected.
async function withBlocks(url, work) {
  const client = createClient(getWsProvider(url));
  const blocks = setInterval(() => client._request("dev_newBlock", []), 500);
  try {
    return await work();
  } finally {
    clearInterval(blocks);
    client.destroy();
  }
}

async function transfer(client) {
  const { query, tx } = client.getUnsafeApi();
  const seen = [];
  const watched = client.finalizedBlock$.subscribe((block) => seen.push(block.number));
  const free = [];
  const account = query.System.Account.watchValue(bob.address, "best").subscribe((found) =>
    free.push((found.value ?? found).data.free),
  );
  const before = (await query.System.Account.getValue(bob.address)).data.free;
  assert.ok(
    (await query.System.Account.getEntries()).some(({ keyArgs }) => keyArgs[0] === alice.address),
  );
  const signer = getPolkadotSigner(alice.publicKey, "Sr25519", (bytes) => alice.sign(bytes));
  const call = tx.Balances.transfer_keep_alive({
    dest: { type: "Id", value: bob.address },
    value: 777n,
  });
  const done = await call.signAndSubmit(signer);
  assert.ok(done.ok);
  assert.ok(
    done.events.some((event) => event.type === "Balances" && event.value.type === "Transfer"),
  );
  assert.equal(await client._request("chain_getBlockHash", [done.block.number]), done.block.hash);
  await until(() => free.at(-1) === before + 777n, "the new balance");
  assert.deepEqual([...new Set(free)], [before, before + 777n]);
  assert.deepEqual(
    seen,
    Array.from({ length: seen.length }, (_, at) => seen[0] + at),
  );
  account.unsubscribe();
  watched.unsubscribe();
}

export const scenarios = {
  // 2: an account, a map, a watched item, every final block, a transfer to finality
  async legacy(url) {
    const asked = new Set();
    const noted = (provider) => (onMessage) => {
      const { send, disconnect } = provider(onMessage);
      return {
        send: (message) => {
          asked.add(JSON.parse(message).method);
          send(message);
        },
        disconnect,
      };
    };
    for (const path of ["/", "/2000"]) {
      await withBlocks(url + path, async () => {
        const client = createClient(withLegacy()(noted(getWsProvider(url + path))));
        await transfer(client);
        client.destroy();
      });
    }
    assert.ok(
      [...asked].every((name) => !name.includes("_v1_")),
      [...asked].join(" "),
    );
    return asked.size;
  },
};

await run(scenarios, process.argv[2], process.argv.slice(3));
