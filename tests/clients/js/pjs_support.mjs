// What scenarios of @polkadot/api share: connections, development accounts, sending to finality.
import { ApiPromise, Keyring, WsProvider } from "@polkadot/api";

export const warned = [];
console.warn = (...words) => warned.push(words.join(" "));
export const keyring = new Keyring({ type: "sr25519" });
const open = new Map();

export async function connect(url, path = "") {
  const key = url + path;
  if (!open.has(key)) {
    open.set(key, await ApiPromise.create({ provider: new WsProvider(key), noInitWarn: true }));
  }
  return open.get(key);
}

export const raw = (api, method, ...params) => api._rpcCore.provider.send(method, params);
export const alice = () => keyring.addFromUri("//Alice");
export const bob = () => keyring.addFromUri("//Bob");

// Submits and resolves when final, with the events of the extrinsic.
export function send(tx, signer, options = {}) {
  return new Promise((done, fail) => {
    tx.signAndSend(signer, { nonce: -1, ...options }, (result) => {
      if (result.status.isFinalized) {
        done(result);
      }
      if (result.isError) {
        fail(new Error(result.status.toString()));
      }
    }).catch(fail);
  });
}

export const names = (result) =>
  result.events.map(({ event }) => `${event.section}.${event.method}`);

export async function eachChain(url, scenario) {
  for (const path of ["/", "/2000"]) {
    await scenario(await connect(url, path), path);
  }
}
