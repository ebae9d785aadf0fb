// Scenario 34, in a browser: what polkadot-js Apps ask of a node when they open it, show the
// explorer, a block, the node, its state and the accounts, and send a transfer. Library, keyring,
// types and origin are those of Apps; the pages are not.
import { ApiPromise, WsProvider } from "@polkadot/api";
import { TypeRegistry } from "@polkadot/types";
import { keyring } from "@polkadot/ui-keyring";
import { cryptoWaitReady } from "@polkadot/util-crypto";

const FIRST = (subscribe) =>
  new Promise((done, fail) => {
    subscribe(done).catch(fail);
  });

async function open(url, typesBundle) {
  await cryptoWaitReady();
  const registry = new TypeRegistry();
  const api = new ApiPromise({ provider: new WsProvider(url), registry, types: {}, typesBundle });
  const errors = [];
  api.on("error", (error) => errors.push(String(error)));
  await new Promise((done) => {
    api.on("ready", done);
  });
  return { api, registry, errors };
}

async function begin({ api, registry }) {
  const [chain, type, name, version] = await Promise.all([
    api.rpc.system.chain(),
    api.rpc.system.chainType(),
    api.rpc.system.name(),
    api.rpc.system.version(),
  ]);
  const properties = registry.createType("ChainProperties", {
    ss58Format: api.registry.chainSS58,
    tokenDecimals: api.registry.chainDecimals,
    tokenSymbol: api.registry.chainTokens,
  });
  registry.setChainProperties(properties);
  const isDevelopment = type.isDevelopment || type.isLocal;
  keyring.loadAll({
    genesisHash: api.genesisHash,
    isDevelopment,
    ss58Format: api.registry.chainSS58,
    type: "ed25519",
  });
  const [section] = Object.keys(api.tx);
  return {
    chain: chain.toString(),
    isDevelopment,
    name: name.toString(),
    version: version.toString(),
    properties: properties.toHuman(),
    accounts: keyring
      .getPairs()
      .map(({ meta }) => meta.name)
      .sort(),
    first: `${section}.${Object.keys(api.tx[section])[0]}`,
    hasSetCode: Boolean(api.tx.system?.setCode),
  };
}

async function explorer({ api }, build) {
  const heads = [];
  const events = [];
  const ends = [
    await api.derive.chain.subscribeNewHeads(async (header) => {
      const now = await (await api.at(header.hash)).query.timestamp.now();
      heads.push({
        number: header.number.toNumber(),
        hash: header.hash.toHex(),
        now: now.toNumber(),
      });
    }),
    await api.query.system.events(async (records) => {
      const header = await api.rpc.chain.getHeader(records.createdAtHash);
      events.push({
        number: header.number.toNumber(),
        names: records.map(({ event }) => `${event.section}.${event.method}`),
      });
    }),
  ];
  const [best, final, now, issuance] = await Promise.all([
    FIRST((tell) => api.derive.chain.bestNumber(tell)),
    FIRST((tell) => api.derive.chain.bestNumberFinalized(tell)),
    FIRST((tell) => api.query.timestamp.now(tell)),
    FIRST((tell) => api.query.balances.totalIssuance(tell)),
  ]);
  const hasEpochs = Boolean(api.derive.session && api.query.babe && api.query.session);
  const session = hasEpochs ? await FIRST((tell) => api.derive.session.progress(tell)) : null;
  await build(3);
  while (heads.length < 4 || !events.length) {
    await new Promise((done) => {
      setTimeout(done, 50);
    });
  }
  for (const end of ends) {
    end();
  }
  const period = api.consts.babe?.expectedBlockTime ?? api.consts.timestamp.minimumPeriod.muln(2);
  return {
    best: best.toNumber(),
    final: final.toNumber(),
    now: now.toNumber(),
    issuance: issuance.toString(),
    heads,
    events,
    target: period.toNumber(),
    epoch: session?.sessionLength.toNumber() ?? null,
  };
}

async function block({ api }, hash) {
  const [[version, events], found, header, final] = await Promise.all([
    api.at(hash).then((at) => Promise.all([at.runtimeVersion, at.query.system.events()])),
    api.rpc.chain.getBlock(hash),
    api.derive.chain.getHeader(hash),
    FIRST((tell) => api.derive.chain.bestNumberFinalized(tell)),
  ]);
  const number = header.number.unwrap();
  const listed = await api.rpc.chain.getBlockHash(number);
  return {
    hash: header.hash.toHex(),
    extrinsics: found.block.extrinsics.map((each) => each.toHex()),
    events: events.length,
    isFinal: final.gte(number) && listed.eq(hash),
    spec: version.specName.toString(),
    most: api.consts.system.blockWeights.maxBlock.refTime.toNumber(),
  };
}

async function node({ api }) {
  const [health, peers, pending] = await Promise.all([
    api.rpc.system.health(),
    api.rpc.system.peers(),
    api.rpc.author.pendingExtrinsics(),
  ]);
  return { health: health.toJSON(), peers: peers.length, pending: pending.length };
}

// The page of the chain's state: every value that needs no key, and every constant, as a person
// reads them.
async function state({ api }) {
  const plain = Object.values(api.query)
    .flatMap((items) => Object.values(items))
    .filter((item) => item.creator?.meta.type.isPlain);
  for (const item of plain) {
    (await item()).toHuman();
  }
  const constants = Object.values(api.consts).flatMap((each) =>
    Object.values(each).map((value) => value.toHuman()),
  );
  return { values: plain.length, constants: constants.length };
}

async function transfer({ api }) {
  const pairs = Object.fromEntries(keyring.getPairs().map((pair) => [pair.meta.name, pair]));
  const [from, to] = [pairs.alice.address, pairs.bob.address];
  const free = async () =>
    (await FIRST((tell) => api.query.system.account.multi([from, to], tell))).map(({ data }) =>
      data.free.toBigInt(),
    );
  const before = await free();
  const [balances, info] = await Promise.all([
    FIRST((tell) => api.derive.balances.all(from, tell)),
    FIRST((tell) => api.derive.accounts.info(from, tell)),
  ]);
  const { partialFee } = await api.tx.balances
    .transferAllowDeath(to, balances.availableBalance)
    .paymentInfo(from);
  const signer = {
    // as Apps have one for an account of theirs
    signPayload: async (payload) =>
      api.registry
        .createType("ExtrinsicPayload", payload, { version: payload.version })
        .sign(pairs.alice),
  };
  const tx = api.tx.balances.transferKeepAlive(to, 1_000_000_000_000n);
  await tx.signAsync(from, { nonce: -1, tip: undefined, withSignedTransaction: true, signer });
  const statuses = [];
  const result = await new Promise((done, fail) => {
    tx.send((found) => {
      statuses.push(found.status.type);
      if (found.isError) {
        fail(new Error(found.status.toString()));
      }
      if (found.status.isFinalized) {
        done(found);
      }
    }).catch(fail);
  });
  const after = await free();
  const paid = result.events
    .find(({ event }) => event.method === "TransactionFeePaid")
    .event.data.actualFee.toBigInt();
  return {
    statuses,
    isOk: !result.dispatchError,
    from: info.accountId?.toString(),
    free: balances.freeBalance.toString(),
    canEstimate: Boolean(api.call.transactionPaymentApi),
    estimate: partialFee.toString(),
    got: (after[1] - before[1]).toString(),
    gave: (before[0] - after[0] - paid).toString(),
  };
}

window.walkApps = async (url, typesBundle) => {
  const opened = await open(url, typesBundle);
  const build = (count) => opened.api._rpcCore.provider.send("dev_newBlock", [{ count }]);
  const told = { begin: await begin(opened), explorer: await explorer(opened, build) };
  told.block = await block(opened, told.explorer.heads.at(-1).hash);
  told.node = await node(opened);
  told.state = await state(opened);
  told.transfer = await transfer(opened);
  await opened.api.disconnect();
  return { ...told, errors: opened.errors };
};
