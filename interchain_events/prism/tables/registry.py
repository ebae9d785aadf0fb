"""Subscriptions and their filters in PRISM's tables: the registry of the service (PR-30, PR-31)."""

import secrets
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from interchain_events.database.database import Database
from interchain_events.events.errors import LimitReached, UnknownToken
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.registry import (
    TOKEN_BYTES,
    Subscription,
    SubscriptionRegistry,
    TokenAndBound,
)
from interchain_events.prism.core.filters import Filter, FilterType, normal_form
from interchain_events.prism.core.process import Status
from interchain_events.prism.tables.operations import id_at, log_filter
from interchain_events.prism.tables.position import position
from pubsub_emulator.primitives.hashing import token_hash

PER_CLIENT: Final = 100
"""The greatest number of subscriptions of one client."""


class PrismRegistry(SubscriptionRegistry[Filter]):
    """The registry of a node.

    The addresses of clients are not stored (PR-54). Their subscriptions are counted in memory while
    the node runs.
    """

    def __init__(self, database: Database, per_client: int = PER_CLIENT) -> None:
        self._database = database
        self._per_client = per_client
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        """The number of subscriptions of each client."""
        self._holders: dict[str, str] = {}
        """The client of each subscription, by its name."""

    def add(
        self, filters: Iterable[Filter], after: Cursor, client: str, *, batches: bool = False
    ) -> TokenAndBound:
        """Create a subscription after the last operation, in one transaction (PR-50).

        `after` is ignored, because the bound is the end of the operations at the moment of writing.
        Raises `LimitReached`.
        """
        token = secrets.token_urlsafe(TOKEN_BYTES)
        key = token_hash(token)
        self._count(client)
        try:
            after = self._insert(key, normal_form(filters), batches)
        except BaseException:
            self._count(client, -1)
            raise
        with self._lock:
            self._holders[key.hex()] = client
        return token, after

    def get(self, token: str) -> Subscription:
        key = token_hash(token)
        with self._database.transaction() as session:
            columns = "operations_batching_allowed, epoch, after_seq_no"
            subscriptions = session.run(
                f"SELECT {columns} FROM subscriptions WHERE subscription_token = ?", (key,)
            )
            if not subscriptions:
                raise UnknownToken("no subscription has this token")
            rows = session.run(
                "SELECT filter_type, did_suffix, revoked_credential_hash, credential_batch_id,"
                " statuses FROM subscription_filters WHERE subscription_token = ? ORDER BY"
                " filter_no",
                (key,),
            )
        filters = [
            Filter(
                FilterType[kind],
                suffix,
                credential_hash=None if credential is None else bytes(credential),
                credential_batch_id=batch,
                status=None if status is None else Status(status),
            )
            for kind, suffix, credential, batch, status in rows
        ]
        batches, epoch, after = subscriptions[0]
        return Subscription(
            key.hex(),
            tuple(map(log_filter, filters)),
            Cursor(epoch, after),
            batches=bool(batches),
            reads_all=any(part.type is FilterType.ANONYMOUS_ANY_FILTER for part in filters),
        )

    def cancel(self, token: str) -> str:
        key = token_hash(token)
        with self._database.transaction(write=True) as session:
            session.run("DELETE FROM subscription_filters WHERE subscription_token = ?", (key,))
            delete = (
                "DELETE FROM subscriptions WHERE subscription_token = ? RETURNING"
                " subscription_token"
            )
            if not session.run(delete, (key,)):
                raise UnknownToken("no subscription has this token")
        with self._lock:
            holder = self._holders.pop(key.hex(), None)
        if holder is not None:
            self._count(holder, -1)
        return key.hex()

    def use(self, names: Collection[str]) -> None:
        """Do nothing, because PRISM's subscriptions remain until they are cancelled."""

    def after_operation(self, token: str) -> bytes:
        """Return the id of the last operation at the time of a subscription.

        Returns empty bytes if there was no operation, or if there is no subscription.
        """
        query = "SELECT after_operation FROM subscriptions WHERE subscription_token = ?"
        rows = self._database.select(query, (token_hash(token),))
        return bytes(rows[0][0] or b"") if rows else b""

    def _insert(self, key: bytes, filters: tuple[Filter, ...], batches: bool) -> Cursor:
        """Store a subscription and its filters, and return its lower bound."""
        with self._database.transaction(write=True) as session:
            current = position(session, lock=self._database.dialect)
            subscription = (
                key,
                id_at(session, current.seq_no) or None,
                batches,
                current.seq_no,
                current.epoch,
            )
            session.run("INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?)", subscription)
            rows = [
                (
                    key,
                    number,
                    part.type.name,
                    part.did_suffix,
                    None if part.status is None else part.status.value,
                    part.credential_hash,
                    part.credential_batch_id,
                )
                for number, part in enumerate(filters)
            ]
            session.run_many("INSERT INTO subscription_filters VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return Cursor(current.epoch, current.seq_no)

    def _count(self, client: str, by: int = 1) -> None:
        """Add to the number of a client's subscriptions. Raises `LimitReached`."""
        with self._lock:
            if self._held[client] + by > self._per_client:
                raise LimitReached(f"a client may have at most {self._per_client} subscriptions")
            self._held[client] += by
            if not self._held[client]:
                del self._held[client]
