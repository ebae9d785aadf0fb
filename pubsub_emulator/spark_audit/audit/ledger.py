"""Results of an audit's last run: totals of its networks, and the receipts of their segments in pages.

    <out>/ledger.json                                  networks, tables, and what their files looked like
    <out>/ledger/network=…/<first>-<digest>.z          receipts, `PAGE` at most

Of a network whose files look as they did no segment is read; another one is gone through from its start.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of, sealed, unsealed
from pubsub_emulator.spark_audit.history.row import Kept
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.account import NetworkAccount
from pubsub_emulator.spark_audit.judge.results import ResultError, SegmentReceipt, put_whole, read_file

LEDGER: Final = "ledger.json"
PAGES: Final = "ledger"
PAGE: Final = 64
"""Receipts of a page: the last page of a network is written anew with each segment."""
_FORMAT: Final = 3


@dataclass(slots=True)
class NetworkLedger:
    """One network; `listing` is what its files up to the account's last segment look like, if that is sure."""

    account: NetworkAccount
    listing: str = ""
    pages: list[str] = field(default_factory=list)

    def close_page(self, store: Store, receipts: Sequence[SegmentReceipt]) -> None:
        """Add more receipts, in order of their segments. Raises `OSError`."""
        last = _read_page(store, self.pages[-1]) if self.pages else []
        has_room = 0 < len(last) < PAGE
        if has_room:
            self.pages.pop()
        held = [*(last if has_room else ()), *receipts]
        for at in range(0, len(held), PAGE):
            page = held[at : at + PAGE]
            data = zlib.compress(canonical_json(page), 1)
            place = f"{PAGES}/network={self.account.network}"
            self.pages.append(f"{place}/{page[0]['segment']:08d}-{digest_of(data)[:32]}.z")
            put_whole(store, self.pages[-1], data)

    def receipts(self, store: Store) -> Iterator[SegmentReceipt]:
        """All receipts by segment; nothing of a page that is not what was written."""
        for path in self.pages:
            yield from _read_page(store, path)


@dataclass(slots=True)
class AuditLedger:
    """All networks by name; `basis` is what their results depend on beside the history."""

    basis: str
    networks: dict[str, NetworkLedger] = field(default_factory=dict)
    tables: object = None
    whole: bool = True
    """Whether the run that wrote it came to its end."""

    def write(self, store: Store) -> None:
        """Keep it for the next run. Raises `OSError`."""
        networks = {
            name: {"account": kept.account.to_json(), "listing": kept.listing, "pages": kept.pages}
            for name, kept in self.networks.items()
        }
        body = {"format": _FORMAT, "basis": self.basis, "networks": networks, "tables": self.tables}
        store.put(LEDGER, sealed({**body, "whole": self.whole}))

    @staticmethod
    def read(store: Store, basis: str) -> "AuditLedger":
        """That of the last run; an empty one where there is none, or a damaged one, or one of another version."""
        try:
            body: Kept = unsealed(store.read(LEDGER))
            if body["format"] != _FORMAT:
                return AuditLedger(basis)
            networks = {
                name: NetworkLedger(NetworkAccount.from_json(kept["account"]), kept["listing"], list(kept["pages"]))
                for name, kept in body["networks"].items()
            }
            if body["basis"] != basis:
                for kept in networks.values():
                    kept.listing = ""
            return AuditLedger(basis, networks, body["tables"], body["whole"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return AuditLedger(basis)


def basis_of(*parts: object) -> str:
    """One digest over what results depend on."""
    return digest_of(canonical_json(list(parts)))


def _read_page(store: Store, path: str) -> list[SegmentReceipt]:
    try:
        page = json.loads(zlib.decompress(read_file(store, path)))
    except (ResultError, ValueError, zlib.error):
        return []
    return page if isinstance(page, list) else []
