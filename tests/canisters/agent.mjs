// node agent.mjs <folder of npm's modules> <url> <canisters as JSON>: calls them as each kind of
// user, prints JSON
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, host, named] = process.argv.slice(2);
const require = createRequire(join(modules, "index.js"));
const { Actor, CanisterStatus, HttpAgent } = require("@icp-sdk/core/agent");
const { Ed25519KeyIdentity } = require("@icp-sdk/core/identity");
const { Secp256k1KeyIdentity } = require("@icp-sdk/core/identity/secp256k1");
const { Principal } = require("@icp-sdk/core/principal");
const who = JSON.parse(named);
const told = [];
for (const identity of [
  undefined,
  Ed25519KeyIdentity.generate(),
  Secp256k1KeyIdentity.generate(),
]) {
  const agent = await HttpAgent.create({ host, identity, shouldFetchRootKey: true, retryTimes: 0 });
  const actor = (name, interfaceOf) =>
    Actor.createActor(interfaceOf, { agent, canisterId: who[name] });
  const publisher = actor("publisher", ({ IDL }) =>
    IDL.Service({ publish: IDL.Func([IDL.Nat], [IDL.Nat], []) }),
  );
  const subscriber = actor("subscriber", ({ IDL }) =>
    IDL.Service({
      ids: IDL.Func([], [IDL.Vec(IDL.Nat)], ["query"]),
      publish: IDL.Func([IDL.Nat], [IDL.Nat], []),
    }),
  );
  const proxy = actor("proxy", ({ IDL }) => {
    const error = IDL.Record({ code: IDL.Nat, message: IDL.Text });
    const blob = IDL.Vec(IDL.Nat8);
    return IDL.Service({
      forward: IDL.Func(
        [IDL.Principal, IDL.Text, blob],
        [IDL.Variant({ Ok: blob, Err: error })],
        [],
      ),
    });
  });
  let ids = [];
  let number = 0;
  for (let tries = 0; tries < 100 && !ids.includes(number); tries++) {
    number = Number(await publisher.publish(7n));
    for (let rounds = 0; rounds < 5; rounds++) {
      // a call lets rounds go on
      await proxy.forward(Principal.fromText(who.subscriber), "nothing", new Uint8Array());
    }
    ids = (await subscriber.ids()).map(Number);
  }
  const rejected = await subscriber.publish(1n).catch((error) => error.code.constructor.name);
  const canisterId = Principal.fromText(who.subscriber);
  const status = await CanisterStatus.request({
    agent,
    canisterId,
    paths: ["time", "module_hash", "subnet"],
  });
  told.push({
    number,
    ids,
    rejected,
    hash: status.get("module_hash"),
    nodes: status.get("subnet").nodeKeys.size,
  });
}
console.log(JSON.stringify(told));
