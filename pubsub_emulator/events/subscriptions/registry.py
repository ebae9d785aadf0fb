"""Tokens and what they subscribe to (EV-20, EV-24): a table where only the token's hash is kept."""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from pubsub_emulator.eventplane.errors import LimitReached, UnknownToken
from pubsub_emulator.eventplane.filters.algebra import Filter, check_limits
from pubsub_emulator.eventplane.filters.codec import dump_filters, parse_filters
from pubsub_emulator.eventplane.filters.normal import normalize
from pubsub_emulator.eventplane.filters.sql import Dialect
from pubsub_emulator.eventplane.log.database import Database, check_prefix, migrate
from pubsub_emulator.eventplane.subscriptions.cursor import Cursor

TOKEN_BYTES: Final = 24
PER_CLIENT: Final = 100
"""Subscriptions that one client may have."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a token; `name` is the hash of the token in hex and safe to write down."""

    name: str
    filters: tuple[Filter, ...]
    after: Cursor
    """The lower bound: what was there when it was made."""
    batches: bool


class Registry(Protocol):
    """Where subscriptions are kept."""

    def add(self, filters: Iterable[Filter], after: Cursor, client: str, *, batches: bool = False) -> str:
        """Make a subscription; returns its token. Raises `BadFilter`, `LimitReached`."""

    def get(self, token: str) -> Subscription:
        """The subscription of a token. Raises `UnknownToken`."""

    def cancel(self, token: str) -> str:
        """Forget a subscription; returns its name. Raises `UnknownToken`."""


class SqlRegistry:
    """The registry in a database, beside the log or elsewhere."""

    def __init__(self, database: Database, *, prefix: str = "subscriptions", per_client: int = PER_CLIENT) -> None:
        self._database = database
        self._prefix = check_prefix(prefix)
        self._per_client = per_client
        table = (
            f"CREATE TABLE {prefix} (name {{TEXT}} PRIMARY KEY, client {{TEXT}} NOT NULL, filters {{TEXT}} NOT NULL, "
            "epoch {INT} NOT NULL, seq {INT} NOT NULL, batches INTEGER NOT NULL)"
        )
        migrate(database, prefix, [[table, f"CREATE INDEX {prefix}_client ON {prefix} (client)"]])

    def add(self, filters: Iterable[Filter], after: Cursor, client: str, *, batches: bool = False) -> str:
        """Make a subscription. Returns its token. Raises `BadFilter`, `LimitReached`."""
        text = dump_filters(normalize(check_limits(filters)))
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._database.transaction(write=True) as session:
            if self._database.dialect is Dialect.POSTGRESQL:  # two requests of one client at once
                session.run("SELECT pg_advisory_xact_lock(hashtext(?::text))", (client,))
            (held,) = session.run(f"SELECT count(*) FROM {self._prefix} WHERE client = ?", (client,))[0]
            if held >= self._per_client:
                raise LimitReached(f"a client may have {self._per_client} subscriptions")
            session.run(
                f"INSERT INTO {self._prefix} VALUES (?, ?, ?, ?, ?, ?)",
                (name_of(token), client, text, after.epoch, after.seq, int(batches)),
            )
        return token

    def get(self, token: str) -> Subscription:
        """The subscription of a token. Raises `UnknownToken`."""
        name = name_of(token)
        with self._database.transaction() as session:
            found = session.run(f"SELECT filters, epoch, seq, batches FROM {self._prefix} WHERE name = ?", (name,))
        if not found:
            raise UnknownToken("no subscription has this token")
        filters, epoch, seq, batches = found[0]
        return Subscription(name, parse_filters(filters), Cursor(epoch, seq), bool(batches))

    def cancel(self, token: str) -> str:
        """Forget a subscription. Returns its name. Raises `UnknownToken`."""
        name = name_of(token)
        with self._database.transaction(write=True) as session:
            if not session.run(f"DELETE FROM {self._prefix} WHERE name = ? RETURNING name", (name,)):
                raise UnknownToken("no subscription has this token")
        return name


def name_of(token: str) -> str:
    """What is kept of a token: its SHA-256 in hex. Tokens are random, so no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
