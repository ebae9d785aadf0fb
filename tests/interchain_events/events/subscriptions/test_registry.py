"""Tokens are kept hashed (EV-20); a cancelled one is as unknown as any other, to the database too
(EV-24).
"""

import base64
import hashlib
from typing import Any

import pytest

from interchain_events.database.opening import open_database
from interchain_events.events.errors import LimitReached, UnknownToken
from interchain_events.events.filters.algebra import ANY
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.events.subscriptions.registry import SqlRegistry, name_of


def test_ev_20_a_token_is_long_and_random_and_kept_only_as_its_hash(database_place: str) -> None:
    database = open_database(database_place)
    registry = SqlRegistry(database)
    tokens = [registry.add([ANY], Cursor(0, 0), "me")[0] for _ in range(3)]
    assert len({*tokens}) == 3
    assert all(len(base64.urlsafe_b64decode(each)) * 8 >= 128 for each in tokens)
    kept = database.select("SELECT * FROM subscriptions")
    assert {row[0] for row in kept} == {
        hashlib.sha256(token.encode()).hexdigest() for token in tokens
    }
    assert not [token for token in tokens if token in str(kept)]
    database.close()


@pytest.mark.parametrize("act", ["get", "cancel"])
def test_ev_24_cancelled_and_unknown_tokens_are_answered_alike(
    database_place: str, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal statements with equal results take equal time; a stopwatch would only test the
    machine.
    """
    database, asked = open_database(database_place), list[tuple[str, int]]()
    registry = SqlRegistry(database)
    token, _ = registry.add([ANY], Cursor(0, 0), "me")
    registry.cancel(token)
    with database.transaction() as session:
        run = type(session).run

    def heard(session: Any, sql: str, params: Any = ()) -> list[tuple[Any, ...]]:
        found = run(session, sql, params)
        asked.append((sql, len(found)))
        return found

    monkeypatch.setattr(type(session), "run", heard)
    work = []
    for each in (token, "x" * len(token), ""):
        asked.clear()
        with pytest.raises(UnknownToken, match=r"^no subscription has this token$"):
            getattr(registry, act)(each)
        work.append(list(asked))
    assert work[0]
    assert work[0] == work[1] == work[2]
    database.close()


def test_a_subscription_that_nobody_uses_is_forgotten_after_its_time(database_place: str) -> None:
    database, now = open_database(database_place), [1_000_000.0]
    registry = SqlRegistry(database, per_client=2, keep_seconds=1_000, clock=lambda: now[0])
    unused, _ = registry.add([ANY], Cursor(0, 0), "me")
    used, _ = registry.add([ANY], Cursor(0, 0), "me")
    now[0] += 1_000  # just in time
    assert registry.get(used).client == "me"
    with pytest.raises(LimitReached):
        registry.add([ANY], Cursor(0, 0), "me")
    now[0] += 1
    with pytest.raises(UnknownToken):
        registry.get(unused)
    registry.add([ANY], Cursor(0, 0), "me")
    assert len(database.select("SELECT 1 FROM subscriptions")) == 2
    now[0] += 1_001
    registry.use([name_of(used)])  # it had a stream all the time
    assert registry.get(used).client == "me"
    database.close()


def test_subscriptions_made_before_times_were_noted_begin_theirs_now(database_place: str) -> None:
    database = open_database(database_place)
    registry = SqlRegistry(database)
    token, _ = registry.add([ANY], Cursor(0, 7), "me")
    with database.transaction(write=True) as session:
        session.run("ALTER TABLE subscriptions DROP COLUMN used")
        session.run("UPDATE migrations SET version = 1 WHERE component = 'subscriptions'")
    later = SqlRegistry(database, keep_seconds=10, clock=lambda: 5e9)
    assert later.get(token).after == Cursor(0, 7)
    database.close()
