// Scenario 20: every header, extrinsic and event of a chain as the observer of the network had it.
// `node demo.mjs CLIENT URL FILE`; the file has a row a block: { number, hash, extrinsics, events,
// names }.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const [client, url, file] = process.argv.slice(2);
const rows = JSON.parse(await readFile(file, "utf8"));

if (client === "pjs") {
  const { ApiPromise, WsProvider } = await import("@polkadot/api");
  const api = await ApiPromise.create({ provider: new WsProvider(url), noInitWarn: true });
  for (const row of rows) {
    const hash = (await api.rpc.chain.getBlockHash(row.number)).toHex();
    const { block } = await api.rpc.chain.getBlock(hash);
    assert.equal(block.header.hash.toHex(), row.hash);
    assert.deepEqual(
      block.extrinsics.map((each) => each.toHex()),
      row.extrinsics,
    );
    const events = await (await api.at(hash)).query.system.events();
    assert.deepEqual(
      events.map(({ event }) => event.toHex()),
      row.events,
    );
  }
} else {
  const { createClient } = await import("polkadot-api");
  const { getWsProvider } = await import("polkadot-api/ws-provider/node");
  const papi = createClient(getWsProvider(url));
  for (const row of rows) {
    assert.equal(
      await papi._request("archive_v1_hashByHeight", [row.number]).then((found) => found[0]),
      row.hash,
    );
    assert.deepEqual(await papi._request("archive_v1_body", [row.hash]), row.extrinsics);
  }
  const { number, hash } = await papi.getFinalizedBlock();
  const last = rows.find((row) => row.number === number);
  assert.equal(hash, last.hash);
  assert.deepEqual(await papi.getBlockBody(hash), last.extrinsics);
  const events = await papi.getUnsafeApi().query.System.Events.getValue({ at: hash });
  assert.deepEqual(
    events.map(({ event }) => `${event.type}.${event.value.type}`),
    last.names,
  );
}
console.log(JSON.stringify({ blocks: rows.length }));
process.exit(0);
