// Scenarios of @polkadot/api against a node in `instant` mode with --dev.
import assert from "node:assert/strict";
import { ApiPromise, HttpProvider, Keyring, WsProvider } from "@polkadot/api";
import {
  alice,
  bob,
  connect,
  eachChain,
  keyring,
  names,
  raw,
  send,
  warned,
} from "./pjs_support.mjs";
import { run } from "./run.mjs";

// polkadot-js does not know the runtime API KeyToIncludeInRelayProof, which is newer.
const KEYS_TO_PROVE = "0x075f8cd374350e84/1";

export const scenarios = {
  // 1: nothing unknown with any version of metadata, and equal queries
  async connectWithEachMetadata(url) {
    for (const path of ["/", "/2000"]) {
      const seen = [];
      for (const hidden of [[], [16], [16, 15]]) {
        const provider = new WsProvider(url + path);
        const send = provider.send.bind(provider);
        provider.send = (method, params, ...rest) => {
          if (method === "state_call" && params[0] === "Metadata_metadata_at_version") {
            const version = Number.parseInt(params[1].slice(2, 4), 16);
            if (hidden.includes(version)) {
              return Promise.resolve("0x00");
            }
          }
          if (
            method === "state_call" &&
            params[0] === "Metadata_metadata_versions" &&
            hidden.length
          ) {
            const left = [14, 15, 16].filter((version) => !hidden.includes(version));
            const hex = left
              .map((version) => `${version.toString(16).padStart(2, "0")}000000`)
              .join("");
            return Promise.resolve(`0x${(left.length * 4).toString(16).padStart(2, "0")}${hex}`);
          }
          return send(method, params, ...rest);
        };
        const api = await ApiPromise.create({ provider, noInitWarn: false });
        const queries = Object.entries(api.query).flatMap(([section, items]) =>
          Object.keys(items)
            .filter((name) => name !== "substrate")
            .map((name) => `${section}.${name}`),
        );
        seen.push([
          queries.join(),
          Object.keys(api.tx).join(),
          (await api.query.system.account(alice().address)).toHex(),
        ]);
        await api.disconnect();
      }
      assert.deepEqual(seen[0], seen[1]);
      assert.deepEqual(seen[0], seen[2]);
    }
    assert.deepEqual(
      warned.filter(
        (words) =>
          /unknown|unable/i.test(words) &&
          !/not decorated/.test(words) &&
          !words.includes(KEYS_TO_PROVE),
      ),
      [],
    );
  },

  // 2: POST, single and batch
  async http(url) {
    const api = await ApiPromise.create({
      provider: new HttpProvider(url.replace("ws", "http")),
      noInitWarn: true,
    });
    const socket = await connect(url, "/");
    assert.equal((await api.rpc.chain.getBlockHash(0)).toHex(), socket.genesisHash.toHex());
    const calls = ["system_chain", "chain_getHeader", "nothing"].map((method, id) => ({
      jsonrpc: "2.0",
      id,
      method,
      params: [],
    }));
    const answers = await (
      await fetch(url.replace("ws", "http"), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(calls),
      })
    ).json();
    assert.deepEqual(
      answers.map((answer) => answer.id),
      [0, 1, 2],
    );
    assert.equal(answers[2].error.code, -32_601);
    await api.disconnect();
  },

  // 9: value, map in pages, double map, default, absent key
  async storage(url) {
    const relay = await connect(url, "/");
    const entries = await relay.query.system.account.entries();
    const paged = [];
    for (let page; ; ) {
      page = await relay.query.system.account.entriesPaged({
        args: [],
        pageSize: 5,
        startKey: paged.at(-1)?.[0],
      });
      if (!page.length) {
        break;
      }
      paged.push(...page);
    }
    assert.ok(paged.length > 10);
    assert.deepEqual(
      paged.map(([key]) => key.toHex()),
      entries.map(([key]) => key.toHex()),
    );
    assert.equal((await relay.query.system.number()).toNumber() > 0, true);
    const ghost = keyring.addFromUri("//Nobody").address;
    assert.equal((await relay.query.system.account(ghost)).data.free.toNumber(), 0);
    assert.equal((await relay.query.broadcaster.registeredPublishers(7)).isNone, true);
    await raw(relay, "pubsub_publish", 1000, "with ttl", "0x01", 50);
    await raw(relay, "dev_newBlock", { count: 3 });
    const rows = await relay.query.broadcaster.ttlData.entries(1000);
    assert.equal(rows.length >= 1, true);
    const para = await connect(url, "/2000");
    assert.equal((await para.query.parachainInfo.parachainId()).toNumber(), 2000);
    assert.ok((await para.query.subscriber.processedRoots()).size >= 1);
  },

  // 10: a publisher's child trie
  async childTrie(url) {
    const relay = await connect(url, "/");
    await raw(relay, "dev_newBlock", { count: 3 });
    const child =
      "0x" +
      Buffer.from(":child_storage:default:").toString("hex") +
      Buffer.from("pubsub").toString("hex") +
      "e8030000";
    const keys = await relay.rpc.childstate.getKeys(child, "0x");
    assert.ok(keys.length >= 4);
    const value = await relay.rpc.childstate.getStorage(child, keys[0]);
    const entry = await raw(relay, "pubsub_entry", 1000, keys[0].toHex());
    assert.ok(value.unwrap().toHex().includes(entry.value.slice(2)));
    const paged = await relay.rpc.childstate.getKeysPaged(child, "0x", 2, keys[0].toHex());
    assert.deepEqual(
      paged.map((key) => key.toHex()),
      keys.slice(1, 3).map((key) => key.toHex()),
    );
  },

  // 11: heads, storage and events over 50 steps, each once and in order
  async subscriptions(url) {
    const relay = await connect(url, "/");
    const heads = [];
    const numbers = [];
    const events = [];
    const ends = [
      await relay.rpc.chain.subscribeNewHeads((head) => {
        heads.push(head.number.toNumber());
      }),
      await relay.query.system.number((number) => {
        numbers.push(number.toNumber());
      }),
      await relay.query.system.events((records) => {
        events.push([records.createdAtHash.toHex(), records.toHex()]);
      }),
    ];
    const start = heads[0] ?? (await relay.rpc.chain.getHeader()).number.toNumber();
    await raw(relay, "dev_newBlock", { count: 50 });
    await new Promise((done) => setTimeout(done, 500));
    for (const end of ends) {
      end();
    }
    const expected = Array.from({ length: 51 }, (_, at) => start + at);
    assert.deepEqual(heads, expected);
    assert.deepEqual(numbers, expected);
    const places = [];
    for (const [hash, records] of events) {
      const at = await relay.at(hash);
      assert.equal((await at.query.system.events()).toHex(), records);
      places.push((await at.query.system.number()).toNumber());
    }
    assert.deepEqual(
      places,
      [...new Set(places)].sort((one, other) => one - other),
    );
  },

  // 12: transfers to finality in three schemes on both chains
  async transfer(url) {
    await eachChain(url, async (api) => {
      for (const type of ["sr25519", "ed25519", "ecdsa"]) {
        const who = new Keyring({ type }).addFromUri("//Alice");
        const before = await api.query.system.account(who.address);
        const to = (await api.query.system.account(bob().address)).data.free.toBigInt();
        const result = await send(api.tx.balances.transferKeepAlive(bob().address, 12_345), who);
        assert.deepEqual(names(result), [
          "balances.Withdraw",
          "balances.Transfer",
          "transactionPayment.TransactionFeePaid",
          "system.ExtrinsicSuccess",
        ]);
        const fee = result.events
          .find(({ event }) => event.method === "TransactionFeePaid")
          .event.data[1].toBigInt();
        const after = await api.query.system.account(who.address);
        assert.equal(after.data.free.toBigInt(), before.data.free.toBigInt() - fee - 12345n);
        assert.equal(
          (await api.query.system.account(bob().address)).data.free.toBigInt(),
          to + 12345n,
        );
        assert.equal(after.nonce.toNumber(), before.nonce.toNumber() + 1);
      }
    });
  },

  // 13: twenty transfers with mortality, tips and nonces from the pool, then one with the state's
  // nonce
  async twenty(url) {
    const api = await connect(url, "/");
    const who = keyring.addFromUri("//Charlie");
    await raw(api, "dev_setBlockBuildMode", "Manual");
    const hashes = [];
    for (let at = 0; at < 20; at += 1) {
      const nonce = await api.rpc.system.accountNextIndex(who.address);
      const tx = await api.tx.balances
        .transferKeepAlive(bob().address, 1000 + at)
        .signAsync(who, { era: 64, tip: 7, nonce });
      hashes.push((await api.rpc.author.submitExtrinsic(tx)).toHex());
    }
    const block = await raw(api, "dev_newBlock");
    await raw(api, "dev_setBlockBuildMode", "Batch");
    const body = (await api.rpc.chain.getBlock(block)).block.extrinsics;
    assert.deepEqual(
      body.filter((xt) => xt.isSigned).map((xt) => xt.hash.toHex()),
      hashes,
    );
    assert.equal(body.at(-1).tip.toNumber(), 7);
    await send(api.tx.system.remark("0x00"), who);
  },

  // 14: what is wrong is said
  async refusals(url) {
    await eachChain(url, async (api) => {
      const who = keyring.addFromUri("//Dave");
      const poor = keyring.addFromUri("//Nobody");
      const refused = async (tx, words) => {
        await assert.rejects(
          raw(api, "author_submitExtrinsic", typeof tx === "string" ? tx : tx.toHex()),
          (error) => error.code === 1010 && words.test(error.data ?? error.message),
        );
      };
      await send(api.tx.system.remark("0x01"), who);
      await refused(await api.tx.system.remark("0x02").signAsync(who, { nonce: 0 }), /outdated/);
      await refused(
        await api.tx.system.remark("0x02").signAsync(poor, { nonce: 0 }),
        /balance too low|pay some fees/,
      );
      const bad = await api.tx.system.remark("0x02").signAsync(who, { nonce: 1 });
      const bytes = bad.toU8a();
      bytes[60] ^= 1;
      await refused(`0x${Buffer.from(bytes).toString("hex")}`, /^Transaction has a bad signature$/);
      // An era that is over names another birth block, so that on any node the signature does not
      // fit.
      const header = await api.rpc.chain.getHeader();
      const era = (period) => ({
        nonce: 1,
        era: api.registry.createType("ExtrinsicEra", { current: header.number.toNumber(), period }),
        blockHash: header.hash,
      });
      const old = await api.tx.system.remark("0x03").signAsync(who, era(4));
      const kept = await api.tx.system.remark("0x03").signAsync(who, era(64));
      await raw(api, "dev_newBlock", { count: 6 });
      await refused(old, /^Transaction has a bad signature$/);
      // A birth block whose hash the chain no longer keeps is another reason.
      const birth = kept.era.asMortalEra.birth(header.number.toNumber());
      await raw(api, "dev_setStorage", { System: { BlockHash: [[[birth], null]] } });
      await refused(kept, /^Transaction has an ancient birth block$/);
    });
  },

  // 15 and 16: failing calls by name; a batch that fails changes nothing but fee and nonce
  async failures(url) {
    await eachChain(url, async (api) => {
      const who = keyring.addFromUri("//Eve");
      const result = await send(api.tx.balances.transferKeepAlive(bob().address, 10n ** 30n), who);
      assert.ok(result.dispatchError);
      const said = result.dispatchError.isModule
        ? api.registry.findMetaError(result.dispatchError.asModule)
        : null;
      assert.ok(said === null || said.docs.join("").length > 0);
      assert.ok(result.dispatchError.isToken || said !== null);
      const before = await api.query.system.account(who.address);
      const batch = await send(
        api.tx.utility.batchAll([
          api.tx.balances.transferKeepAlive(bob().address, 1000),
          api.tx.balances.transferKeepAlive(bob().address, 10n ** 30n),
        ]),
        who,
      );
      assert.ok(batch.dispatchError);
      const fee = batch.events
        .find(({ event }) => event.method === "TransactionFeePaid")
        .event.data[1].toBigInt();
      const after = await api.query.system.account(who.address);
      assert.equal(after.data.free.toBigInt(), before.data.free.toBigInt() - fee);
      assert.equal(after.nonce.toNumber(), before.nonce.toNumber() + 1);
    });
  },

  // 17: sudo opens a channel; XCM runs a call on a parachain
  async sudo(url) {
    const relay = await connect(url, "/");
    const done = await send(
      relay.tx.sudo.sudo(relay.tx.hrmp.forceOpenHrmpChannel(1000, 2000, 8, 1024)),
      alice(),
    );
    assert.ok(names(done).includes("sudo.Sudid"), names(done).join());
    const open = async () =>
      (await relay.query.hrmp.hrmpChannels({ sender: 1000, recipient: 2000 })).isSome;
    for (let at = 0; at < 3 && !(await open()); at += 1) {
      await raw(relay, "dev_newBlock", { count: 50 });
    }
    assert.ok(await open());
    const para = await connect(url, "/2000");
    const redeliver = para.tx.subscriber.redeliver(1000).method.toHex();
    const message = {
      V5: [
        { UnpaidExecution: { weightLimit: "Unlimited", checkOrigin: null } },
        {
          Transact: {
            originKind: "Superuser",
            fallbackMaxWeight: null,
            call: { encoded: redeliver },
          },
        },
      ],
    };
    const destination = { V5: { parents: 0, interior: { X1: [{ Parachain: 2000 }] } } };
    const deliveries = [];
    const provider = relay._rpcCore.provider;
    const stop = await provider.subscribe(
      "pubsub_delivery",
      "pubsub_subscribeDeliveries",
      [{ para: 2000 }],
      (_, event) => deliveries.push(event),
    );
    await send(relay.tx.sudo.sudo(relay.tx.xcmPallet.send(destination, message)), alice());
    await raw(relay, "dev_newBlock", { count: 3 });
    await provider.unsubscribe("pubsub_delivery", "pubsub_unsubscribeDeliveries", stop);
    assert.ok(deliveries.length >= 4, `${deliveries.length} deliveries`);
  },

  // 19: a signed extrinsic publishes, and the subscriber has it
  async publish(url) {
    const publisher = await connect(url, "/1000");
    const relay = await connect(url, "/");
    const keys = (await raw(relay, "pubsub_subscriptions", 2000)).items[0].keys;
    const before = (await relay.rpc.chain.getHeader()).number.toNumber();
    const deliveries = [];
    const provider = relay._rpcCore.provider;
    await provider.subscribe(
      "pubsub_delivery",
      "pubsub_subscribeDeliveries",
      [{ key: keys[0].key }],
      (_, event) => deliveries.push(event),
    );
    await send(publisher.tx.publisher.publish([[keys[0].key, "0x2a2a2a", 0]]), alice());
    await raw(relay, "dev_newBlock", { count: 2 });
    const found = deliveries.find((event) => event.value === "0x2a2a2a");
    assert.ok(found, JSON.stringify(deliveries));
    assert.ok(
      found.includedAt - before <= 3,
      `delivered in ${found.includedAt}, asked in ${before}`,
    );
    assert.equal((await raw(relay, "pubsub_entry", 1000, keys[0].key)).value, "0x2a2a2a");
  },

  // 22: the estimate is what is paid
  async fees(url) {
    await eachChain(url, async (api) => {
      const who = keyring.addFromUri("//Ferdie");
      const tx = api.tx.balances.transferKeepAlive(bob().address, 4242);
      const { partialFee } = await tx.paymentInfo(who);
      const result = await send(tx, who);
      const paid = result.events
        .find(({ event }) => event.method === "TransactionFeePaid")
        .event.data[1].toBigInt();
      assert.equal(partialFee.toBigInt(), paid);
      return Number(paid);
    });
  },

  // 23: a dry run tells what then happens
  async dryRun(url) {
    await eachChain(url, async (api) => {
      const who = keyring.addFromUri("//Ferdie");
      const fine = await api.tx.system.remark("0x07").signAsync(who, { nonce: -1 });
      assert.equal((await api.rpc.system.dryRun(fine.toHex())).toHex(), "0x0000");
      const fails = await api.tx.balances
        .transferKeepAlive(bob().address, 10n ** 30n)
        .signAsync(who, { nonce: -1 });
      const told = await api.rpc.system.dryRun(fails.toHex());
      assert.ok(told.isOk && told.asOk.isErr);
      const { old, new: then, delta } = await raw(api, "dev_dryRun", { extrinsic: fine.toHex() });
      const [nonce, later] = [old, then].map((side) => side.system.account[who.address].nonce);
      assert.equal(later, nonce + 1);
      assert.deepEqual(delta.system.account[who.address].nonce, [nonce, later]);
      const call = await api.call.dryRunApi.dryRunCall(
        { system: { Signed: who.address } },
        api.tx.balances.transferKeepAlive(bob().address, 5),
        5,
      );
      assert.ok(call.isOk && call.asOk.executionResult.isOk, call.toString());
    });
  },

  // 24: what the library derives
  async derive(url) {
    const relay = await connect(url, "/");
    await raw(relay, "dev_newBlock", { to: 60 }).catch(() => null);
    await eachChain(url, async (api, path) => {
      const best = await api.derive.chain.bestNumber();
      const block = await api.derive.chain.getBlock(await api.rpc.chain.getBlockHash());
      assert.equal(block.block.header.number.toNumber(), best.toNumber());
      assert.ok((await api.derive.tx.signingInfo(alice().address)).nonce.toNumber() >= 0);
      assert.ok((await api.derive.balances.all(alice().address)).freeBalance.toBigInt() > 0n);
      if (path === "/") {
        assert.ok((await api.derive.session.progress()).sessionLength.toNumber() > 0);
      }
    });
  },

  // 26: a thousand storage subscriptions, one step
  async thousand(url) {
    const api = await ApiPromise.create({ provider: new WsProvider(url), noInitWarn: true });
    const provider = api._rpcCore.provider;
    let first = 0;
    const later = [];
    for (let at = 0; at < 999; at += 1) {
      const key = `0x${at.toString(16).padStart(8, "0")}`;
      let started = false;
      await provider.subscribe("state_storage", "state_subscribeStorage", [[key]], () => {
        if (started) {
          later.push(key);
        } else {
          started = true;
          first += 1;
        }
      });
    }
    await raw(api, "dev_setStorage", [
      ["0x00000005", "0x01"],
      ["0x00000011", "0x02"],
    ]);
    await new Promise((done) => setTimeout(done, 300));
    assert.equal(first, 999);
    assert.deepEqual(later.sort(), ["0x00000005", "0x00000011"]);
    await api.disconnect();
  },

  // 27: back five, and another line of blocks
  async rewind(url) {
    const relay = await connect(url, "/");
    const heads = [];
    const end = await relay.rpc.chain.subscribeNewHeads((head) => {
      heads.push(head.number.toNumber());
    });
    await raw(relay, "dev_newBlock", { count: 6 });
    const left = (await relay.rpc.chain.getBlockHash()).toHex();
    const best = (await relay.rpc.chain.getHeader()).number.toNumber();
    const target = await raw(relay, "dev_setHead", -5);
    assert.equal((await relay.rpc.chain.getBlockHash()).toHex(), target);
    await raw(relay, "pubsub_publish", 1000, "otherwise", "0x01");
    await raw(relay, "dev_newBlock", { count: 6 });
    assert.notEqual((await relay.rpc.chain.getBlockHash(best)).toHex(), left);
    assert.equal((await relay.rpc.chain.getHeader(left)).number.toNumber(), best);
    await new Promise((done) => setTimeout(done, 300));
    end();
    assert.ok(heads.includes(best - 5));
  },

  // 28: blocks, storage and time as with chopsticks; roots stay true
  async development(url) {
    const api = await connect(url, "/");
    const who = keyring.addFromUri("//Nobody2").address;
    await raw(api, "dev_setStorage", {
      System: {
        Account: [
          [
            [who],
            {
              nonce: 0,
              consumers: 0,
              providers: 1,
              sufficients: 0,
              data: { free: 77, reserved: 0, frozen: 0, flags: 0 },
            },
          ],
        ],
      },
    });
    assert.equal((await api.query.system.account(who)).data.free.toNumber(), 77);
    const now = (await api.query.timestamp.now()).toNumber();
    const then = await raw(api, "dev_timeTravel", now + 600_000);
    await raw(api, "dev_newBlock");
    assert.equal((await api.query.timestamp.now()).toNumber(), then);
  },

  // 32: a cheat is refused with evidence, and honesty returns
  async cheat(url) {
    const relay = await connect(url, "/");
    const judged = [];
    const provider = relay._rpcCore.provider;
    await provider.subscribe(
      "pubsub_candidateJudged",
      "pubsub_subscribeCandidates",
      [2000],
      (_, event) => judged.push(event),
    );
    const { collators } = await raw(relay, "pubsub_cheat", 2000, ["omit-node"]);
    await raw(relay, "pubsub_publish", 1000, "bait", "0x01");
    await raw(relay, "dev_newBlock", { count: 2 * collators });
    const refused = judged.find((event) => event.status === "rejected");
    assert.ok(refused, JSON.stringify(judged));
    const { evidence } = await raw(relay, "pubsub_candidate", refused.hash);
    assert.equal(evidence[0].verdict, refused.verdict);
    await raw(relay, "pubsub_honest", 2000);
    judged.length = 0;
    await raw(relay, "dev_newBlock", { count: 3 });
    assert.ok(judged.every((event) => event.status === "included"));
  },
};

await run(scenarios, process.argv[2], process.argv.slice(3));
