// Scenarios of polkadot-api against a node in `instant` mode with --dev.
import assert from "node:assert/strict";
import { Keyring } from "@polkadot/api";
import { Binary, createClient } from "polkadot-api";
import { getPolkadotSigner } from "polkadot-api/signer";
import { getWsProvider } from "polkadot-api/ws-provider/node";
import { run } from "./run.mjs";

const ALICE = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY";
const keyring = new Keyring({ type: "sr25519" });
const bob = keyring.addFromUri("//Bob");

function signer(uri) {
  const pair = keyring.addFromUri(uri);
  return getPolkadotSigner(pair.publicKey, "Sr25519", (bytes) => pair.sign(bytes));
}

async function onChain(url, path, scenario) {
  const client = createClient(getWsProvider(url + path));
  try {
    return await scenario(client, client.getUnsafeApi());
  } finally {
    client.destroy();
  }
}

const eachChain = async (url, scenario) => {
  for (const path of ["/", "/2000"]) {
    await onChain(url, path, scenario);
  }
};

export const scenarios = {
  // 3: connect, read an account
  async connect(url) {
    await eachChain(url, async (client, api) => {
      const { genesisHash } = await client.getChainSpecData();
      assert.equal(await client._request("chain_getBlockHash", [0]), genesisHash);
      const account = await api.query.System.Account.getValue(ALICE);
      assert.ok(account.data.free > 0n);
      assert.equal(await api.constants.System.SS58Prefix(), 42);
      const final = await client.getFinalizedBlock();
      assert.equal((await client.getBlockHeader(final.hash)).number, final.number);
    });
  },

  // 9: entries, defaults, absent keys
  async storage(url) {
    await eachChain(url, async (_client, api) => {
      const entries = await api.query.System.Account.getEntries();
      assert.ok(entries.length > 10);
      const nobody = keyring.addFromUri("//Nobody at all").address;
      assert.equal((await api.query.System.Account.getValue(nobody)).data.free, 0n);
      assert.ok((await api.query.System.Number.getValue()) > 0);
      const events = await api.query.System.Events.getValue();
      assert.ok(Array.isArray(events));
    });
  },

  // 12: a transfer to finality, its events and sums
  async transfer(url) {
    await eachChain(url, async (_client, api) => {
      const before = (await api.query.System.Account.getValue(bob.address)).data.free;
      const tx = api.tx.Balances.transfer_keep_alive({
        dest: { type: "Id", value: bob.address },
        value: 4321n,
      });
      const estimate = await tx.getEstimatedFees(ALICE);
      const done = await tx.signAndSubmit(signer("//Alice"));
      assert.ok(done.ok);
      const paid = done.events.find(
        (event) => event.type === "TransactionPayment" && event.value.type === "TransactionFeePaid",
      );
      assert.equal(paid.value.value.actual_fee, estimate);
      assert.equal(
        (await api.query.System.Account.getValue(bob.address)).data.free,
        before + 4321n,
      );
    });
  },

  // 14: why an extrinsic is refused, as the library names it
  async refusals(url) {
    await eachChain(url, async (client, api) => {
      const remark = (byte) => api.tx.System.remark({ remark: Binary.fromHex(byte) });
      const refused = (work, why) =>
        assert.rejects(
          work,
          ({ name, error }) =>
            name === "InvalidTxError" && error.type === "Invalid" && error.value.type === why,
        );
      const charlie = signer("//Charlie");
      for (const byte of ["0x00", "0x01"]) {
        assert.ok((await remark(byte).signAndSubmit(charlie)).ok);
      }
      const nonce = (
        await api.query.System.Account.getValue(keyring.addFromUri("//Charlie").address)
      ).nonce;
      // not 0, which the library takes for none given
      await refused(remark("0x02").signAndSubmit(charlie, { nonce: nonce - 1 }), "Stale");
      await refused(remark("0x02").signAndSubmit(signer("//Nobody")), "Payment");
      const pair = keyring.addFromUri("//Charlie");
      const forger = getPolkadotSigner(pair.publicKey, "Sr25519", (bytes) =>
        pair.sign(Uint8Array.from([...bytes, 0])),
      );
      await refused(remark("0x02").signAndSubmit(forger), "BadProof");
      const { number, hash } = await client.getFinalizedBlock();
      const mortal = (period) =>
        remark("0x03").sign(charlie, { at: hash, nonce, mortality: { mortal: true, period } });
      const [old, kept] = [await mortal(4), await mortal(64)];
      await client._request("dev_newBlock", [{ count: 6 }]);
      // its era names another birth block now, on any chain
      await refused(client.submit(old), "BadProof");
      const birth = number - (number % 64);
      const key = await api.query.System.BlockHash.getKey(birth);
      const known = await client._request("state_getStorage", [key]);
      await client._request("dev_setStorage", [[[key, null]]]);
      await refused(client.submit(kept), "AncientBirthBlock");
      // what comes next is born in the same block
      await client._request("dev_setStorage", [[[key, known]]]);
    });
  },

  // 15: a call that fails is said to
  async failures(url) {
    await eachChain(url, async (_client, api) => {
      const tx = api.tx.Balances.transfer_keep_alive({
        dest: { type: "Id", value: bob.address },
        value: 10n ** 30n,
      });
      const done = await tx.signAndSubmit(signer("//Alice"));
      assert.equal(done.ok, false);
      assert.ok(done.dispatchError.type);
      await assert.rejects(tx.signAndSubmit(signer("//Alice"), { nonce: 1 }));
    });
  },

  // 19: publish on 1000, delivered on 2000
  async publish(url) {
    const key = await onChain(url, "/", (client) =>
      client._request("pubsub_subscriptions", [2000]),
    ).then((found) => found.items[0].keys[1].key);
    await onChain(url, "/1000", async (_client, api) => {
      const entries = [[Binary.fromHex(key), Binary.fromHex("0x0102"), 0]];
      const done = await api.tx.Publisher.publish({
        entries,
        publishes: entries,
        items: entries,
      }).signAndSubmit(signer("//Alice"));
      assert.ok(done.ok);
    });
    await onChain(url, "/", async (client) => {
      await client._request("dev_newBlock", [{ count: 2 }]);
      assert.equal((await client._request("pubsub_entry", [1000, key])).value, "0x0102");
    });
  },

  // 25 and 27: a follow survives a rewind, and misses no final block after it
  async rewind(url) {
    await onChain(url, "/", async (client, api) => {
      const seen = [];
      const watched = client.finalizedBlock$.subscribe((block) => seen.push(block.number));
      await client._request("dev_newBlock", [{ count: 5 }]);
      await client._request("dev_setHead", [-3]);
      await client._request("dev_newBlock", [{ count: 5 }]);
      await new Promise((done) => setTimeout(done, 500));
      watched.unsubscribe();
      const best = await client._request("chain_getHeader", []);
      assert.equal(seen.at(-1), Number(best.number));
      assert.ok((await api.query.System.Number.getValue()) >= seen.at(-1));
    });
  },

  // 29: snapshot, five blocks, revert, the same inputs: the same hashes
  async snapshot(url) {
    await onChain(url, "/", async (client) => {
      const five = async () => {
        const hashes = [];
        for (let at = 0; at < 5; at += 1) {
          hashes.push(await client._request("dev_newBlock", []));
        }
        return hashes;
      };
      const kept = await client._request("dev_snapshot", []);
      const once = await five();
      assert.equal(await client._request("dev_revert", [kept]), true);
      assert.deepEqual(await five(), once);
    });
  },
};

await run(scenarios, process.argv[2], process.argv.slice(3));
