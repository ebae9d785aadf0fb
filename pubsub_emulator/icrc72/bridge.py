"""The bridge: what a log of chains holds reaches canisters, row by row, in order, once (IC-55).

    bridge = Bridge(orchestrator, store=store, settings=settings)
    who = network.create(0, bridge)

A row is published under `org.polkadot.<network>.<para id or relay>.<Pallet>.<Event>` with the id epoch·2⁴⁸ + seq. After
a rewind comes `org.polkadot.<network>.relay.Log.Rewound`, then the rows of the new epoch. Kinds are registered as they
appear; a kind that the orchestrator refuses is counted and its rows wait in the publisher's log.

A log keeps bytes as hexadecimal text. Here such text becomes a Blob, so text that is nothing but `0x` and hex digits
does, too. Naturals become Nat and negative numbers Int: a log does not say whether an integer was signed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pubsub_emulator.events.log.store import Store
from pubsub_emulator.events.rows import Row
from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.client import App
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.namespaces import cleaned
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.icrc72.values import Value, of

EPOCH: Final = 1 << 48  # ids of one epoch

_BYTES: Final = re.compile(r"0x(?:[0-9a-f]{2})*", re.ASCII)
_ROWS: Final = 100  # rows read in one round


class Bridge(App):
    """A publisher that reads a log; `data` is epoch and seq of the last row that it published."""

    heartbeat: bool = True

    def __init__(self, orchestrator: Principal, settings: Settings = DEFAULTS, *, store: Store) -> None:
        self.store = store
        super().__init__(orchestrator, settings, publications={}, subscriptions={})

    def start(self) -> object:
        """Nothing is read yet."""
        return (self.store.head().epoch, 0)

    def on_heartbeat(self, ctx: Context) -> None:
        """Publish the rows that follow, or tell of a rewind."""
        epoch, seq = self.data
        head = self.store.head()
        if head.epoch != epoch:
            common = self.store.common(epoch)
            seq = seq if common is None else min(seq, common)
            data = of({"epoch": head.epoch, "seq": seq})
            self._say(ctx, self.namespace(None, "Log.Rewound"), data, head.epoch * EPOCH)
        elif head.seq == seq:
            return
        page = self.store.read(seq, _ROWS)
        if page.head.epoch == head.epoch:
            for row in page.rows:
                seq = row.seq
                self._say(ctx, self.namespace(row.chain, row.kind), data_of(row), head.epoch * EPOCH + seq)
        self.data = (head.epoch, seq)
        self.flush(ctx)

    def refused(self) -> int:
        """The number of kinds that the orchestrator refused."""
        mine = {} if self.publisher is None else self.publisher.state.mine
        return sum(bool(each.error) for each in mine.values())

    def namespace(self, chain: int | None, kind: str) -> str:
        """The namespace in which rows of a kind are published."""
        where = "relay" if chain is None else str(chain)
        parts = ("org", "polkadot", self.store.network, where, *kind.split(".", 1))
        return ".".join(cleaned(part)[:64] for part in parts)

    def _say(self, ctx: Context, namespace: str, data: Value, number: int) -> None:
        if self.publisher is not None:
            self.publisher.add_publication(ctx, namespace, ((keys.REPLAY, of(True)),))
        self.emit(ctx, namespace, data, number=number)


def data_of(row: Row) -> Value:
    """The data of a row's event."""
    fields = value_of(row.fields)
    chain = "relay" if row.chain is None else str(row.chain)
    where = {"seq": row.seq, "anchor": row.anchor, "block": row.block, "index": row.index, "time": row.time * 1_000_000}
    return of({**where, "chain": chain, "kind": row.kind, "id": row.id, "fields": fields})


def value_of(value: object) -> Value:
    """A field of a log as an ICRC16 value. Raises `TypeError`."""
    if isinstance(value, str):
        return of(bytes.fromhex(value[2:]) if _BYTES.fullmatch(value) else value)
    if isinstance(value, Mapping):
        return of({str(name): value_of(each) for name, each in value.items()})
    return of([value_of(each) for each in value] if isinstance(value, Sequence) else value)
