// More scenarios of @polkadot/api against a node in `instant` mode with --dev.
import assert from "node:assert/strict";
import { decode_proof as decodeProof } from "@acala-network/chopsticks-executor";
import { ApiPromise, WsProvider } from "@polkadot/api";
import { alice, connect, names, raw, send } from "./pjs_support.mjs";
import { proxy, until } from "./proxy.mjs";
import { run } from "./run.mjs";

const CHILD = `0x${Buffer.from(":child_storage:default:pubsub").toString("hex")}`;
const childOf = (para) => {
  const id = Buffer.alloc(4);
  id.writeUInt32LE(para);
  return CHILD + id.toString("hex");
};

export const scenarios = {
  // 18: a publisher registers and deletes its keys: the hold, the events, and no child root any
  // more
  async publisherLeavesNothing(url) {
    const relay = await connect(url, "/");
    const held = async () =>
      (await relay.query.system.account(alice().address)).data.reserved.toBigInt();
    const before = await held();
    const done = await send(relay.tx.broadcaster.registerPublisher(2000), alice());
    assert.ok(names(done).includes("broadcaster.PublisherRegistered"), names(done).join());
    assert.ok(names(done).includes("balances.Held"), names(done).join());
    const deposit = relay.consts.broadcaster.publisherDeposit.toBigInt();
    assert.equal(await held(), before + deposit);
    await raw(relay, "pubsub_publish", 2000, "soon gone", "0x01");
    await raw(relay, "dev_newBlock", { count: 3 });
    const keys = (await relay.rpc.childstate.getKeys(childOf(2000), "0x")).map((key) =>
      key.toHex(),
    );
    assert.equal(keys.length, 1);
    assert.notEqual(await raw(relay, "state_getStorage", childOf(2000)), null);
    const gone = await send(relay.tx.broadcaster.deleteKeys(2000, keys), alice());
    assert.equal(gone.dispatchError, undefined);
    assert.ok(
      names(gone).some((name) => name.startsWith("broadcaster.")),
      names(gone).join(),
    );
    assert.equal(await raw(relay, "state_getStorage", childOf(2000)), null);
    assert.equal((await relay.rpc.childstate.getKeys(childOf(2000), "0x")).length, 0);
  },

  // 21: a child read proof, opened by another implementation: from the state root to the child root
  // to the entry
  async childProof(url) {
    const relay = await connect(url, "/");
    await raw(relay, "dev_newBlock", { count: 3 });
    const child = childOf(1000);
    const key = (await relay.rpc.childstate.getKeys(child, "0x"))[0].toHex();
    const header = await relay.rpc.chain.getHeader();
    const { at, proof } = await relay.rpc.state.getChildReadProof(child, [key], header.hash);
    assert.equal(at.toHex(), header.hash.toHex());
    const nodes = proof.map((node) => node.toHex());
    const top = await decodeProof(header.stateRoot.toHex(), nodes);
    const root = new Map(top).get(child);
    assert.equal(root, await raw(relay, "state_getStorage", child));
    const entries = new Map(await decodeProof(root, nodes));
    assert.equal(
      entries.get(key),
      (await relay.rpc.childstate.getStorage(child, key)).unwrap().toHex(),
    );
    return nodes.length;
  },

  // 25: the socket is cut; the library connects again and its subscriptions go on
  async dropped(url) {
    const way = await proxy(url);
    const api = await ApiPromise.create({
      provider: new WsProvider(way.url, 100),
      noInitWarn: true,
    });
    const heads = [];
    const relay = await connect(url, "/");
    const best = async () => (await relay.rpc.chain.getHeader()).number.toNumber();
    const ends = [
      await api.rpc.chain.subscribeNewHeads((head) => {
        heads.push(head.number.toNumber());
      }),
    ];
    await raw(relay, "dev_newBlock", { count: 2 });
    await until(async () => heads.at(-1) === (await best()), "the newest head");
    way.drop();
    await raw(relay, "dev_newBlock", { count: 3 });
    await until(() => way.opened() > 1 && api.isConnected, "another connection");
    await until(async () => heads.at(-1) === (await best()), "the head after the cut");
    await raw(relay, "dev_newBlock", { count: 2 });
    await until(async () => heads.at(-1) === (await best()), "heads as before");
    assert.equal((await api.query.system.number()).toNumber(), await best());
    for (const end of ends) {
      end();
    }
    await api.disconnect();
    way.end();
  },

  // 37: root makes a state senseless; reading goes on, and a rewind heals
  async brokenState(url) {
    const relay = await connect(url, "/");
    const good = (await relay.rpc.chain.getHeader()).number.toNumber();
    const key = relay.query.session.currentIndex.key();
    await send(relay.tx.sudo.sudo(relay.tx.system.setStorage([[key, "0xff"]])), alice()).catch(
      () => null,
    );
    await assert.rejects(raw(relay, "dev_newBlock", { count: 60 }), (error) =>
      [1, -32_603].includes(error.code),
    );
    assert.ok((await relay.rpc.chain.getHeader()).number.toNumber() >= good);
    assert.ok((await relay.query.system.account(alice().address)).data.free.toBigInt() > 0n);
    await raw(relay, "dev_setHead", good);
    const block = await raw(relay, "dev_newBlock", { count: 2 });
    assert.equal((await relay.rpc.chain.getHeader(block)).number.toNumber(), good + 2);
  },
};

await run(scenarios, process.argv[2], process.argv.slice(3));
