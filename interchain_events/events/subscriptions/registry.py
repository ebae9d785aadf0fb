"""The registry of subscriptions: tokens and their filters (EV-20, EV-24).

Only the hash of a token is stored.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

from interchain_events.database.database import Database, Dialect, Session, check_prefix, migrate
from interchain_events.events.errors import LimitReached, UnknownToken
from interchain_events.events.filters.algebra import Any, Filter, check_limits
from interchain_events.events.filters.codec import dump_filters, parse_filters
from interchain_events.events.filters.normal import normalize
from interchain_events.events.subscriptions.cursor import Cursor
from pubsub_emulator.primitives.hashing import token_hash

F_contra = TypeVar("F_contra", contravariant=True)
TokenAndBound: TypeAlias = tuple[str, Cursor]

TOKEN_BYTES: Final = 24
"""The number of random bytes of a token."""
PER_CLIENT: Final = 100
"""The greatest number of subscriptions of one client."""
KEEP_SECONDS: Final = 7 * 86_400.0
"""How long a subscription is stored after its last use."""
_NOTED: Final = 100
"""The time of a use is stored only if the stored time is older than `keep_seconds` divided by this
number. Otherwise each use would cost a write."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription of a token."""

    name: str
    """The hash of the token in hexadecimal. It can be logged and recorded."""
    filters: tuple[Filter, ...]
    after: Cursor
    """The lower bound of its streams, which is the position at which it was created."""
    batches: bool
    """Whether the client accepts several rows in one message."""
    reads_all: bool = False
    """Whether all rows match, so that a stream from the start reads the whole log."""
    client: str = ""
    """The client that created it, empty if it is not stored."""


class SubscriptionRegistry(Protocol[F_contra]):
    """A store of subscriptions. Clients pass filters of type `F_contra`."""

    def add(
        self, filters: Iterable[F_contra], after: Cursor, client: str, *, batches: bool = False
    ) -> TokenAndBound:
        """Create a subscription. Returns its token and its lower bound.

        The bound is `after`, usually the log's end. A registry in the log's own database may
        instead use the end at the moment of writing. Raises `BadFilter` and `LimitReached`.
        """

    def get(self, token: str) -> Subscription:
        """Return the subscription of a token. Raises `UnknownToken`."""

    def cancel(self, token: str) -> str:
        """Delete a subscription and return its name. Raises `UnknownToken`."""

    def use(self, names: Collection[str]) -> None:
        """Note that these subscriptions are used now, so that they do not expire."""


class SqlRegistry(SubscriptionRegistry[Filter]):
    """A registry in a database, which may be that of the log.

    Subscriptions that are not used for `keep_seconds` are deleted.
    """

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
            f"CREATE TABLE {prefix} (name {{TEXT}} PRIMARY KEY, client {{TEXT}} NOT NULL, filters"
            " {TEXT} NOT NULL, epoch {INT} NOT NULL, seq {INT} NOT NULL, batches INTEGER NOT"
            " NULL)"
        )
        first = [table, f"CREATE INDEX {prefix}_client ON {prefix} (client)"]
        used = f"ALTER TABLE {prefix} ADD COLUMN used {{INT}} NOT NULL DEFAULT 0"
        migrate(database, prefix, [first, [used, self._use_all]])

    def add(
        self, filters: Iterable[Filter], after: Cursor, client: str, *, batches: bool = False
    ) -> TokenAndBound:
        text = dump_filters(normalize(check_limits(filters)))
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._database.transaction(write=True) as session:
            if self._database.dialect is Dialect.POSTGRESQL:
                # Otherwise two concurrent requests of one client could both pass the limit.
                session.run("SELECT pg_advisory_xact_lock(hashtext(?::text))", (client,))
            now = int(self._clock())
            session.run(
                f"DELETE FROM {self._prefix} WHERE used < ?", (now - int(self._keep_seconds),)
            )
            (count,) = session.run(
                f"SELECT count(*) FROM {self._prefix} WHERE client = ?", (client,)
            )[0]
            if count >= self._per_client:
                raise LimitReached(f"a client may have at most {self._per_client} subscriptions")
            session.run(
                f"INSERT INTO {self._prefix} VALUES (?, ?, ?, ?, ?, ?, ?)",
                (name_of(token), client, text, after.epoch, after.seq, int(batches), now),
            )
        return token, after

    def get(self, token: str) -> Subscription:
        name = name_of(token)
        now = self._clock()
        with self._database.transaction() as session:
            rows = session.run(
                f"SELECT filters, epoch, seq, batches, client, used FROM {self._prefix} WHERE name"
                " = ? AND used >= ?",
                (name, int(now - self._keep_seconds)),
            )
        if not rows:
            raise UnknownToken("no subscription has this token")
        filters, epoch, seq, batches, client, used = rows[0]
        if used < now - self._keep_seconds / _NOTED:
            self.use((name,))
        parsed = parse_filters(filters)
        return Subscription(
            name,
            parsed,
            Cursor(epoch, seq),
            batches=bool(batches),
            reads_all=any(isinstance(part, Any) for part in parsed),
            client=client,
        )

    def cancel(self, token: str) -> str:
        name = name_of(token)
        with self._database.transaction(write=True) as session:
            if not session.run(
                f"DELETE FROM {self._prefix} WHERE name = ? RETURNING name", (name,)
            ):
                raise UnknownToken("no subscription has this token")
        return name

    def use(self, names: Collection[str]) -> None:
        now = int(self._clock())
        with self._database.transaction(write=True) as session:
            session.run_many(
                f"UPDATE {self._prefix} SET used = ? WHERE name = ?",
                [(now, name) for name in names],
            )

    def _use_all(self, session: Session) -> None:
        """Set the time of use of subscriptions that an earlier version has stored without it."""
        session.run(f"UPDATE {self._prefix} SET used = ?", (int(self._clock()),))


def name_of(token: str) -> str:
    """Return the name of a token's subscription, which is the token's hash in hexadecimal."""
    return token_hash(token).hex()
