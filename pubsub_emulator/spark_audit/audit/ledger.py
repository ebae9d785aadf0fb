"""The ledger: the results of an audit's last run, from which the next run continues.

It has the totals of each network, and the receipts of all judged segments in pages:

    <out>/ledger.json                                  networks, tables, stamps of their files
    <out>/ledger/network=…/<first>-<digest>.z          up to `PAGE` receipts

If the files of a network have not changed since the last run (`NetworkLedger.listing`), its
segments are not read again. Otherwise the run starts at the network's first segment. It still does
not judge segments whose inputs did not change, but uses their receipts from the pages.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from pubsub_emulator.spark_audit.history.manifest import canonical_json, digest_of, sealed, unsealed
from pubsub_emulator.spark_audit.history.row import JsonObject
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
"""Increased when the content of the ledger changes."""


@dataclass(slots=True)
class NetworkLedger:
    """The stored state of one network."""

    account: NetworkAccount
    listing: str = ""
    """A checksum over names, sizes and times of the network's files up to the account's last
    segment.

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
        pending = list(receipts)
        last_page = _read_page(store, self.pages[-1]) if self.pages else []
        if 0 < len(last_page) < PAGE:
            self.pages.pop()
            pending = [*last_page, *receipts]
        for start in range(0, len(pending), PAGE):
            page = pending[start : start + PAGE]
            data = zlib.compress(canonical_json(page), 1)
            folder = f"{PAGES}/network={self.account.network}"
            self.pages.append(f"{folder}/{page[0]['segment']:08d}-{digest_of(data)[:32]}.z")
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
    """Name of the network's first manifest. If it is still there, this is the same history, and
    manifests that are missing were lost."""
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
    """By network, the part of the history that some run has read. An entry stays if a later run
    does not find that part any more."""

    def write(self, store: Store) -> None:
        """Write the ledger for the next run. Raises `OSError`."""
        networks = {
            name: {
                "account": ledger.account.to_json(),
                "listing": ledger.listing,
                "pages": ledger.pages,
            }
            for name, ledger in self.networks.items()
        }
        body = {"format": _FORMAT, "basis": self.basis, "networks": networks, "tables": self.tables}
        known = {name: asdict(manifests) for name, manifests in self.known.items()}
        store.put(LEDGER, sealed({**body, "whole": self.whole, "known": known}))

    @staticmethod
    def read(store: Store, basis: str) -> "AuditLedger":
        """Return the ledger of the last run.

        It is empty if there was no run, or if the file is damaged or has another format. From a
        ledger of the previous format, only `known` is used. If the last run had another `basis`
        (version of the check and thresholds), the networks' listings are cleared, so that every
        segment is looked at again.
        """
        try:
            body: JsonObject = unsealed(store.read(LEDGER))
            known = {name: Known(**manifests) for name, manifests in body["known"].items()}
            if body["format"] == _FORMAT - 1:
                return AuditLedger(basis, known=known)
            if body["format"] != _FORMAT:
                return AuditLedger(basis)
            networks = {
                name: NetworkLedger(
                    NetworkAccount.from_json(stored["account"]),
                    stored["listing"],
                    list(stored["pages"]),
                )
                for name, stored in body["networks"].items()
            }
            if body["basis"] != basis:
                for ledger in networks.values():
                    ledger.listing = ""
            return AuditLedger(
                basis,
                networks,
                body["tables"],
                whole=body["whole"],
                known=known,
            )
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
