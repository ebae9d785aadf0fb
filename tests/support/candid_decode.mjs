// Decodes Candid messages with the field's own library and prints each as text: a line in, a line out.
import { IDL } from "@dfinity/candid";
import { createInterface } from "node:readline";

const ICRC16 = IDL.Rec();
const map = IDL.Vec(IDL.Tuple(IDL.Text, ICRC16));
ICRC16.fill(
  IDL.Variant({
    Array: IDL.Vec(ICRC16), Blob: IDL.Vec(IDL.Nat8), Bool: IDL.Bool, Bytes: IDL.Vec(IDL.Nat8),
    Class: IDL.Vec(IDL.Record({ name: IDL.Text, value: ICRC16, immutable: IDL.Bool })),
    Float: IDL.Float64, Floats: IDL.Vec(IDL.Float64), Int: IDL.Int, Int8: IDL.Int8, Int16: IDL.Int16,
    Int32: IDL.Int32, Int64: IDL.Int64, Map: map, ValueMap: IDL.Vec(IDL.Tuple(ICRC16, ICRC16)), Nat: IDL.Nat,
    Nat8: IDL.Nat8, Nat16: IDL.Nat16, Nat32: IDL.Nat32, Nat64: IDL.Nat64, Nats: IDL.Vec(IDL.Nat),
    Option: IDL.Opt(ICRC16), Principal: IDL.Principal, Set: IDL.Vec(ICRC16), Text: IDL.Text,
  }),
);
const event = IDL.Record({
  eventId: IDL.Nat, prevEventId: IDL.Opt(IDL.Nat), timestamp: IDL.Nat, namespace: IDL.Text, data: ICRC16,
  source: IDL.Principal, headers: IDL.Opt(map),
});
const notification = IDL.Record({
  notificationId: IDL.Nat, eventId: IDL.Nat, prevEventId: IDL.Opt(IDL.Nat), timestamp: IDL.Nat, namespace: IDL.Text,
  data: ICRC16, headers: IDL.Opt(map), source: IDL.Principal, filter: IDL.Opt(IDL.Text),
});
const types = {
  icrc72_publish: [IDL.Vec(event)],
  icrc72_handle_notification: [IDL.Vec(notification)],
  icrc72_confirm_notifications: [IDL.Vec(IDL.Nat)],
};

for await (const line of createInterface({ input: process.stdin })) {
  const [method, hex] = line.split(" ");
  const [items] = IDL.decode(types[method], Uint8Array.from(Buffer.from(hex, "hex")));
  const shown = items.map((each) =>
    typeof each === "bigint" ? `${each}` : `${each.eventId} ${each.namespace} ${each.source.toText()}`);
  console.log(shown.join(";"));
}
