"""Tokens and what they subscribe to (EV-20, EV-24): a table where only the token's hash is kept."""

import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from pubsub_emulator.database.database import Database, Dialect, Session, check_prefix, migrate
from pubsub_emulator.events.errors import LimitReached, UnknownToken
from pubsub_emulator.events.filters.algebra import Any, Filter, check_limits
from pubsub_emulator.events.filters.codec import dump_filters, parse_filters
from pubsub_emulator.events.filters.normal import normalize
from pubsub_emulator.events.subscriptions.cursor import Cursor
from pubsub_emulator.primitives.hashing import token_hash

F_contra = TypeVar("F_contra", contravariant=True)
TokenAndBound: TypeAlias = tuple[str, Cursor]

TOKEN_BYTES: Final = 24
PER_CLIENT: Final = 100  #: Subscriptions that one client may have
KEEP_SECONDS: Final = 7 * 86_400.0  #: How long a subscription stays that nobody uses
_NOTED: Final = 100
"""The time of use is written when it is older than so small a part of the time that an unused subscription stays."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a token; `name` is the hash of the token in hex and safe to write down."""

    name: str
    filters: tuple[Filter, ...]
    after: Cursor  #: The lower bound: what was there when it was made
    batches: bool
    reads_all: bool = False
    """Whether it selects so much that to read it from the start costs a reading of the whole log."""
    client: str = ""  #: Who made it, where that is stored


class Registry(Protocol[F_contra]):
    """The store of subscriptions; clients give filters of type `F_contra`."""

    def add(self, filters: Iterable[F_contra], after: Cursor, client: str, *, batches: bool = False) -> TokenAndBound:
        """Make a subscription; returns its token and lower bound. Raises `BadFilter`, `LimitReached`.

        The bound is `after`, the log's end for most, or the end at the moment of writing where that is the same place.
        """

    def get(self, token: str) -> Subscription:
        """The subscription of a token. Raises `UnknownToken`."""

    def cancel(self, token: str) -> str:
        """Forget a subscription; returns its name. Raises `UnknownToken`."""

    def use(self, names: Collection[str]) -> None:
        """Note that these subscriptions have streams now, so that they do not expire."""


class SqlRegistry(Registry[Filter]):
    """The registry in a database, beside the log or elsewhere. What nobody uses for `keep_seconds` is forgotten."""

    def __init__(
        self,
        database: Database,
        *,
        prefix: str = "subscriptions",
        per_client: int = PER_CLIENT,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._keep_seconds = keep_seconds
        self._clock = clock
        self._prefix = check_prefix(prefix)
        self._per_client = per_client
        table = (
            f"CREATE TABLE {prefix} (name {{TEXT}} PRIMARY KEY, client {{TEXT}} NOT NULL, filters {{TEXT}} NOT NULL, "
            "epoch {INT} NOT NULL, seq {INT} NOT NULL, batches INTEGER NOT NULL)"
        )
        first = [table, f"CREATE INDEX {prefix}_client ON {prefix} (client)"]
        used = f"ALTER TABLE {prefix} ADD COLUMN used {{INT}} NOT NULL DEFAULT 0"
        migrate(database, prefix, [first, [used, self._use_all]])

    def add(self, filters: Iterable[Filter], after: Cursor, client: str, *, batches: bool = False) -> TokenAndBound:
        text = dump_filters(normalize(check_limits(filters)))
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._database.transaction(write=True) as session:
            if self._database.dialect is Dialect.POSTGRESQL:  # two requests of one client at once
                session.run("SELECT pg_advisory_xact_lock(hashtext(?::text))", (client,))
            now = int(self._clock())
            session.run(f"DELETE FROM {self._prefix} WHERE used < ?", (now - int(self._keep_seconds),))
            (held,) = session.run(f"SELECT count(*) FROM {self._prefix} WHERE client = ?", (client,))[0]
            if held >= self._per_client:
                raise LimitReached(f"a client may have {self._per_client} subscriptions")
            session.run(
                f"INSERT INTO {self._prefix} VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name_of(token), client, text, after.epoch, after.seq, int(batches), now),
            )
        return token, after

    def get(self, token: str) -> Subscription:
        name = name_of(token)
        now = self._clock()
        with self._database.transaction() as session:
            found = session.run(
                f"SELECT filters, epoch, seq, batches, client, used FROM {self._prefix} WHERE name = ? AND used >= ?",
                (name, int(now - self._keep_seconds)),
            )
        if not found:
            raise UnknownToken("no subscription has this token")
        filters, epoch, seq, batches, client, used = found[0]
        if used < now - self._keep_seconds / _NOTED:
            self.use((name,))
        parsed = parse_filters(filters)
        reads_all = any(isinstance(each, Any) for each in parsed)
        return Subscription(name, parsed, Cursor(epoch, seq), bool(batches), reads_all, client)

    def cancel(self, token: str) -> str:
        name = name_of(token)
        with self._database.transaction(write=True) as session:
            if not session.run(f"DELETE FROM {self._prefix} WHERE name = ? RETURNING name", (name,)):
                raise UnknownToken("no subscription has this token")
        return name

    def use(self, names: Collection[str]) -> None:
        now = int(self._clock())
        with self._database.transaction(write=True) as session:
            session.run_many(f"UPDATE {self._prefix} SET used = ? WHERE name = ?", [(now, each) for each in names])

    def _use_all(self, session: Session) -> None:
        """The time of those that were made before times were noted begins now."""
        session.run(f"UPDATE {self._prefix} SET used = ?", (int(self._clock()),))


def name_of(token: str) -> str:
    """The name of a token's subscription: the token's hash in hex."""
    return token_hash(token).hex()
