// Reads the calls of parachain inherents with @polkadot/api and polkadot-api, by a chain's metadata
// alone: `inherent.mjs METADATA CALLS`. Both files have hexadecimal digits, CALLS one call on each
// line. Writes one line of JSON for each call and library: what it reads, and its bytes again.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { Metadata, TypeRegistry } from "@polkadot/types";

const [metadata, calls] = await Promise.all(
  process.argv.slice(2).map(async (path) => (await readFile(path, "utf8")).trim()),
);

function pjs() {
  const registry = new TypeRegistry();
  registry.setMetadata(new Metadata(registry, metadata));
  const sent = (message) => [message.sentAt.toNumber(), (message.msg ?? message.data).toHex()];
  const hashed = (message) => [message.sentAt.toNumber(), message.msgHash.toHex()];
  return (bytes) => {
    const call = registry.createType("Call", bytes);
    const [data, messages] = call.args;
    const { downwardMessages: down, horizontalMessages: across } = messages;
    return {
      again: call.toHex(),
      call: `${call.section}.${call.method}`,
      parentHead: data.validationData.parentHead.toHex(),
      relayParent: data.validationData.relayParentNumber.toNumber(),
      root: data.validationData.relayParentStorageRoot.toHex(),
      maxPovSize: data.validationData.maxPovSize.toNumber(),
      nodes: [...data.relayChainState.trieNodes].map((node) => node.toHex()).sort(),
      descendants: data.relayParentDescendants.length,
      peer: data.collatorPeerId.isNone ? null : data.collatorPeerId.unwrap().toHex(),
      downward: down.fullMessages.map(sent),
      downwardHashed: down.hashedMessages.map(hashed),
      horizontal: across.fullMessages.map(([sender, message]) => [
        sender.toNumber(),
        ...sent(message),
      ]),
      horizontalHashed: across.hashedMessages.map(([sender, message]) => [
        sender.toNumber(),
        ...hashed(message),
      ]),
    };
  };
}

function papi() {
  // These are polkadot-api's own, of its version; the folder has others beside them.
  const own = createRequire(createRequire(import.meta.url).resolve("polkadot-api"));
  const { getDynamicBuilder, getLookupFn } = own("@polkadot-api/metadata-builders");
  const { decAnyMetadata, unifyMetadata } = own("@polkadot-api/substrate-bindings");
  const lookup = getLookupFn(unifyMetadata(decAnyMetadata(metadata)));
  const codec = getDynamicBuilder(lookup).buildDefinition(lookup.call);
  const hex = (bytes) =>
    typeof bytes === "string"
      ? bytes
      : (bytes.asHex?.() ?? `0x${Buffer.from(bytes).toString("hex")}`);
  const sent = (message) => [message.sent_at, hex(message.msg ?? message.data)];
  const hashed = (message) => [message.sent_at, hex(message.msg_hash)];
  return (bytes) => {
    const call = codec.dec(bytes);
    const { data, inbound_messages_data: messages } = call.value.value;
    const { downward_messages: down, horizontal_messages: across } = messages;
    return {
      again: hex(codec.enc(call)),
      call: `${call.type}.${call.value.type}`,
      parentHead: hex(data.validation_data.parent_head),
      relayParent: data.validation_data.relay_parent_number,
      root: hex(data.validation_data.relay_parent_storage_root),
      maxPovSize: data.validation_data.max_pov_size,
      nodes: data.relay_chain_state.map(hex).sort(),
      descendants: data.relay_parent_descendants.length,
      peer: data.collator_peer_id === undefined ? null : hex(data.collator_peer_id),
      downward: down.full_messages.map(sent),
      downwardHashed: down.hashed_messages.map(hashed),
      horizontal: across.full_messages.map(([sender, message]) => [sender, ...sent(message)]),
      horizontalHashed: across.hashed_messages.map(([sender, message]) => [
        sender,
        ...hashed(message),
      ]),
    };
  };
}

for (const [library, read] of Object.entries({ pjs: pjs(), papi: papi() })) {
  for (const bytes of calls.split("\n")) {
    console.log(JSON.stringify({ library, ...read(bytes) }));
  }
}
