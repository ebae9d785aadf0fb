"""The bridge, a canister that publishes the events of chains, each once and in order (IC-55).

    bridge = Bridge(orchestrator, store=store, settings=settings)
    who = network.create(0, bridge)

The events come from a log of the package `events`. A row is published in the namespace
`org.polkadot.<network>.<para id or relay>.<Pallet>.<Event>`, with the id epoch·2⁴⁸ + seq. After a
rewind of the log, an event `org.polkadot.<network>.relay.Log.Rewound` is published, and then the
rows of the new epoch. A namespace is registered when its first row appears. If the orchestrator
refuses it, its rows wait in the publisher's log.

The log has bytes as hexadecimal text. Such text becomes a Blob here, and so does a text that only
looks like it. Natural numbers become Nat and negative numbers Int, because the log does not say
whether a type was signed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from interchain_events.events.log.store import Store
from interchain_events.events.rows import Row
from interchain_events.icrc72 import keys
from interchain_events.icrc72.client import App
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.namespaces import cleaned
from interchain_events.icrc72.settings import DEFAULTS, Settings
from interchain_events.icrc72.values import Value, of

EPOCH: Final = 1 << 48
"""How many ids each epoch of the log has."""

_BYTES: Final = re.compile(r"0x(?:[0-9a-f]{2})*", re.ASCII)
_ROWS: Final = 100
"""How many rows are read in a round."""


class Bridge(App):
    """A publisher that reads a log.

    Its `data` is the epoch and the sequence number of the last row that it has published.
    """

    heartbeat: bool = True

    def __init__(
        self, orchestrator: Principal, settings: Settings = DEFAULTS, *, store: Store
    ) -> None:
        self.store = store
        super().__init__(orchestrator, settings, publications={}, subscriptions={})

    def start(self) -> object:
        """Return the position before the first row of the present epoch."""
        return (self.store.head().epoch, 0)

    def on_heartbeat(self, ctx: Context) -> None:
        """Publish the next rows of the log. After a rewind, first publish that it happened."""
        epoch, seq = self.data
        head = self.store.head()
        if head.epoch != epoch:
            # Rows up to `common` are the same in both epochs.
            common = self.store.common(epoch)
            seq = seq if common is None else min(seq, common)
            data = of({"epoch": head.epoch, "seq": seq})
            self._say(ctx, self.namespace(None, "Log.Rewound"), data, head.epoch * EPOCH)
        elif head.seq == seq:
            return
        page = self.store.read(seq, _ROWS)
        # If the log was rewound between the two reads, the rows wait for the next round.
        if page.head.epoch == head.epoch:
            for row in page.rows:
                seq = row.seq
                self._say(
                    ctx, self.namespace(row.chain, row.kind), data_of(row), head.epoch * EPOCH + seq
                )
        self.data = (head.epoch, seq)
        self.flush(ctx)

    def refused(self) -> int:
        """Return the number of namespaces that the orchestrator has refused."""
        mine = {} if self.publisher is None else self.publisher.state.mine
        return sum(bool(publication.error) for publication in mine.values())

    def namespace(self, chain: int | None, kind: str) -> str:
        """Return the namespace for rows of a chain (`None` is the relay chain) and a kind."""
        where = "relay" if chain is None else str(chain)
        parts = ("org", "polkadot", self.store.network, where, *kind.split(".", 1))
        return ".".join(cleaned(part)[:64] for part in parts)

    def _say(self, ctx: Context, namespace: str, data: Value, number: int) -> None:
        """Emit an event with an id, in a namespace that is registered if it is new."""
        if self.publisher is not None:
            self.publisher.add_publication(ctx, namespace, ((keys.REPLAY, of(True)),))
        self.emit(ctx, namespace, data, number=number)


def data_of(row: Row) -> Value:
    """Return the data of the event for a row. Times are in nanoseconds."""
    fields = value_of(row.fields)
    chain = "relay" if row.chain is None else str(row.chain)
    where = {
        "seq": row.seq,
        "anchor": row.anchor,
        "block": row.block,
        "index": row.index,
        "time": row.time * 1_000_000,
    }
    return of({**where, "chain": chain, "kind": row.kind, "id": row.id, "fields": fields})


def value_of(value: object) -> Value:
    """Return a field of a log as an ICRC16 value. Raises `TypeError` for other Python objects."""
    if isinstance(value, str):
        return of(bytes.fromhex(value[2:]) if _BYTES.fullmatch(value) else value)
    if isinstance(value, Mapping):
        return of({str(name): value_of(part) for name, part in value.items()})
    return of([value_of(part) for part in value] if isinstance(value, Sequence) else value)
