// What a session leaves behind: signed extrinsics on both chains, development calls, a rewind, a
// cheat. Writes the hashes of the newest blocks as one line of JSON.
import assert from "node:assert/strict";
import { alice, bob, connect, raw, send } from "./pjs_support.mjs";

const [url, kind] = process.argv.slice(2);
const relay = await connect(url, "/");
const para = await connect(url, "/2000");
const pay = async (api, amount) => {
  const done = await send(api.tx.balances.transferKeepAlive(bob().address, amount), alice());
  assert.equal(done.dispatchError, undefined);
};

await pay(relay, 1001);
await pay(para, 1002);
if (kind === "journal") {
  await raw(relay, "pubsub_publish", 1000, "price", "0x2a", 9);
  await raw(relay, "dev_setStorage", [["0x1234", "0x56"]]);
  await raw(relay, "dev_timeTravel", (await relay.query.timestamp.now()).toNumber() + 60_000);
  await raw(relay, "dev_newBlock", { count: 3 });
  await raw(relay, "dev_setHead", -2);
  await pay(relay, 1003);
  await pay(para, 1004);
} else {
  await raw(relay, "pubsub_cheat", 2000, ["forge-extrinsic"]);
  for (const amount of [1003, 1004, 1005]) {
    await pay(para, amount);
  }
  await raw(relay, "dev_newBlock", { count: 4 });
}
const heads = await Promise.all(
  [relay, para].map(async (api) => (await api.rpc.chain.getBlockHash()).toHex()),
);
console.log(JSON.stringify(heads));
process.exit(0);
