"""The ledger: the results of an audit's last run, from which the next run continues.

It has the totals of each network, and the receipts of all judged segments in pages:

    <out>/ledger.json                                  networks, tables, stamps of their files
    <out>/ledger/network=…/<first>-<digest>.z          up to `PAGE` receipts

If the files of a network look as they did in the last run (`NetworkLedger.listing`), none of its
segments is read again. Otherwise the run goes through the network from its first segment; receipts
from the pages save the judging of segments whose inputs did not change.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of, sealed, unsealed
from pubsub_emulator.spark_audit.history.row import Kept
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge.account import NetworkAccount
from pubsub_emulator.spark_audit.judge.results import (
    ResultError,
    SegmentReceipt,
    put_whole,
    read_file,
)

LEDGER: Final = "ledger.json"
PAGES: Final = "ledger"
PAGE: Final = 64
"""Receipts in a page. The last page of a network is rewritten with each new segment, so a page must
stay small."""
_FORMAT: Final = 5
"""Raised when the content of the ledger changes. Of a ledger of the format before, only `known` is
taken, and a ledger of another format is ignored."""


@dataclass(slots=True)
class NetworkLedger:
    """The stored state of one network."""

    account: NetworkAccount
    listing: str = ""
    """A digest over names, sizes and times of the network's files up to the account's last segment.

    Empty if the next run must look at every segment again, for example because a file could not be
    read. See `Listing.sums`.
    """
    pages: list[str] = field(default_factory=list)
    """Paths of the pages with receipts, in order of their segments."""

    def close_page(self, store: Store, receipts: Sequence[SegmentReceipt]) -> None:
        """Append receipts, which must be in order of their segments, to the pages.

        If the last page has room, its receipts move to a new file, together with the new receipts.
        Files are named by their content and never changed; `Rounds.tidy` removes the old ones.
        Raises `OSError`.
        """
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
        """Yield all receipts in order of their segments.

        A page that is damaged or missing yields nothing. Its segments are then judged again.
        """
        for path in self.pages:
            yield from _read_page(store, path)


@dataclass(frozen=True, slots=True)
class Known:
    """The part of a network's history that an audit has read, to notice when some of it is gone."""

    first: str
    """Name of the network's first manifest. It tells a history that lost its end from another one.
    """
    last: str
    """Name of the last manifest."""
    segment: int
    """The segment of the last manifest."""


@dataclass(slots=True)
class AuditLedger:
    """The stored state of all networks."""

    basis: str
    """A digest over everything except the history that results depend on: version of the check and
    thresholds."""
    networks: dict[str, NetworkLedger] = field(default_factory=dict)
    """Networks by name."""
    tables: object = None
    """The state of the output's tables, as `Tables.to_json` makes it."""
    whole: bool = True
    """Whether the run that wrote the ledger finished. A run also writes it after each round."""
    known: dict[str, Known] = field(default_factory=dict)
    """By network, the part of the history that was there in some run. It stays if a later run does
    not find it any more."""

    def write(self, store: Store) -> None:
        """Write the ledger for the next run. Raises `OSError`."""
        networks = {
            name: {"account": kept.account.to_json(), "listing": kept.listing, "pages": kept.pages}
            for name, kept in self.networks.items()
        }
        body = {"format": _FORMAT, "basis": self.basis, "networks": networks, "tables": self.tables}
        known = {name: asdict(each) for name, each in self.known.items()}
        store.put(LEDGER, sealed({**body, "whole": self.whole, "known": known}))

    @staticmethod
    def read(store: Store, basis: str) -> "AuditLedger":
        """Return the ledger of the last run.

        It is empty if there was no run, or if the file is damaged or has another format. If the
        last run had another `basis`, the networks' listings are cleared, so that every segment is
        looked at again.
        """
        try:
            body: Kept = unsealed(store.read(LEDGER))
            known = {name: Known(**each) for name, each in body["known"].items()}
            if body["format"] != _FORMAT:
                return AuditLedger(basis, known=known if body["format"] == _FORMAT - 1 else {})
            networks = {
                name: NetworkLedger(
                    NetworkAccount.from_json(kept["account"]), kept["listing"], list(kept["pages"])
                )
                for name, kept in body["networks"].items()
            }
            if body["basis"] != basis:
                for kept in networks.values():
                    kept.listing = ""
            return AuditLedger(basis, networks, body["tables"], body["whole"], known)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return AuditLedger(basis)


def basis_of(*parts: object) -> str:
    """Return one digest over everything that the results depend on."""
    return digest_of(canonical_json(list(parts)))


def _read_page(store: Store, path: str) -> list[SegmentReceipt]:
    """Return the receipts of a page, an empty list if the page is missing or damaged."""
    try:
        page = json.loads(zlib.decompress(read_file(store, path)))
    except (ResultError, ValueError, zlib.error):
        return []
    return page if isinstance(page, list) else []
