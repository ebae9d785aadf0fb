"""A store in Redis or Valkey, in which each step is applied by one script.

The store's sets are SETs, its tables are hashes, and the due rows are a sorted set.

A step runs in this process over beliefs (see `beliefs`). One script then compares every value that
the step has read with the stored one. If all are equal, it applies all writes. Otherwise it returns
the stored values, and the step runs again. So a step costs one round trip if the beliefs were
right.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson
import redis
from redis.exceptions import NoScriptError, RedisError

from interchain_events.database.errors import StoreError
from interchain_events.distributor.once.beliefs import Attempt, Beliefs
from interchain_events.distributor.once.transaction import (
    MEMBER,
    ROW,
    DueRow,
    Step,
    Store,
    T,
    Transaction,
)

VERSION: Final = 1
"""The version of the schema."""
CHECK_SECONDS: Final = 10.0
"""How often the server's settings are checked. They are also checked at each connection."""
CHECK_AGAIN_SECONDS: Final = 1.0
"""The wait before a server that was refused is checked again."""
CLOCK_TOLERANCE: Final = 250
"""The greatest difference, in ms, between a step's time and the server's clock.

The process does not ask the server for its time before each step but estimates it. The script
refuses a step whose time is too far off.
"""
LONG: Final = 64
"""Longer texts are compared by their SHA-1 hash, so that they do not have to be sent."""
LANES: Final = 2
"""The number of lanes that `due` lists."""

_EVICTS: Final = "maxmemory-policy is {}, which drops ids; set it to noeviction"
_LANE: Final = 100_000_000_000_000
"""The score of a due row is its lane times this number, plus its time.

The number is far beyond any time in ms, so the order of scores is the order in which rows are
listed.
"""

# ARGV[1] is the JSON of [prefix, now, tolerance, checks, writes, due, undue]:
# - checks: [kind, table, keys, expected values] for each table or set. An empty text stands for an
#   absent value, and `#` with 40 hex digits for a SHA-1 hash.
# - writes: [kind, table, flat list of keys and values (for a set, its members), keys to remove].
# - due: a flat list of scores and rows.
# - undue: the written rows that have no due time.
# The answer is {1, time} if the writes were applied. Otherwise it is {0, time, list}: a flat list
# of the positions of wrong values, counted from 1, and the stored values.
# One argument is packed much faster than many, and one call for a table is much faster than one for
# each key.
_APPLY: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local asked = cjson.decode(ARGV[1])
local prefix = asked[1]
local wrong = math.abs(now - asked[2]) > asked[3]
local found, at = {}, 0
local function parts(list, use)
  for first = 1, #list, 1000 do
    use(first, unpack(list, first, math.min(first + 999, #list)))
  end
end
local function send(name, key, list)
  parts(list, function(_, ...) redis.call(name, key, ...) end)
end
local function compare(value, expected)
  at = at + 1
  local seen = value
  if string.sub(expected, 1, 1) == '#' then
    seen = '#' .. redis.sha1hex(value)
  end
  if seen ~= expected then
    wrong = true
    found[#found + 1] = at
    found[#found + 1] = value
  end
end
for _, check in ipairs(asked[4]) do
  local keys, expected = check[3], check[4]
  if check[1] == 's' then
    for i, key in ipairs(keys) do
      compare(redis.call('SISMEMBER', check[2], key) == 1 and '1' or '', expected[i])
    end
  else
    parts(keys, function(first, ...)
      for i, value in ipairs(redis.call('HMGET', prefix .. check[2], ...)) do
        compare(value or '', expected[first + i - 1])
      end
    end)
  end
end
if wrong then return {0, now, found} end
for _, write in ipairs(asked[5]) do
  if write[1] == 's' then
    send('SADD', write[2], write[3])
    send('SREM', write[2], write[4])
  else
    send('HSET', prefix .. write[2], write[3])
    send('HDEL', prefix .. write[2], write[4])
  end
end
send('ZADD', prefix .. 'due', asked[6])
send('ZREM', prefix .. 'due', asked[7])
return {1, now}
"""

_DUE: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local found, left = {}, tonumber(ARGV[2])
for lane = 0, LANES - 1 do
  if left > 0 then
    local from = string.format('%.0f', lane * LANE)
    local to = string.format('%.0f', lane * LANE + now)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', ARGV[1] .. 'due', \
from, to, 'LIMIT', 0, left)) do
      found[#found + 1] = member
      left = left - 1
    end
  end
end
return found
""".replace("LANES", str(LANES)).replace("LANE", str(_LANE))


_NAMES: Final = {
    each: hashlib.sha1(each.encode(), usedforsecurity=False).hexdigest() for each in (_APPLY, _DUE)
}
"""The SHA-1 hash of each script, under which the server caches it."""


class RedisStore(Store):
    """A store in one Redis database, not in a cluster.

    SETs have the names of the store's sets. All other keys begin with `prefix`.
    """

    def __init__(self, url: str, prefix: str = "ied:") -> None:
        super().__init__()
        self._prefix = prefix
        self._offset: int | None = None
        """The server's clock minus this machine's monotonic clock, in ms. `None` before the first
        answer."""
        self._believed = Beliefs()
        self._refused = ""
        """Why the server is not used, empty if it is."""
        self._checked = 0.0
        """When the server's settings were checked, in seconds of the monotonic clock."""
        try:
            self._redis = redis.Redis.from_url(
                url,
                decode_responses=True,
                socket_timeout=10,
                socket_connect_timeout=5,
                single_connection_client=True,
                redis_connect_func=self._connected,
            )
        except (ValueError, RedisError) as error:
            raise StoreError(f"Redis: {error}") from error
        self._check()

    def _check(self) -> None:
        """Refuse a server that evicts keys, and data of a newer version. Raises `StoreError`."""
        self._check_eviction()
        self._ask("SET", f"{self._prefix}version", VERSION, "NX")
        version = int(self._ask("GET", f"{self._prefix}version") or 0)
        if version > VERSION:
            raise StoreError(
                f"Redis: made by a newer version (schema {version}, this one knows {VERSION})"
            )

    def _connected(self, connection: Any) -> None:
        """Set a new connection up, and check the server's settings before its first use.

        The server may be another one than before, or the same one after a restart. Raises
        `RedisError`.
        """
        connection.on_connect()
        connection.send_command("INFO", "memory")
        for line in str(connection.read_response()).splitlines():
            name, _, policy = line.partition(":")
            if name == "maxmemory_policy" and policy != "noeviction":
                raise RedisError(_EVICTS.format(policy))
        # The rest is checked before the next transaction.
        self._checked = 0.0

    def _check_eviction(self) -> None:
        """Raise `StoreError` if the server may drop keys, or has dropped some.

        The settings may change while the server runs. `INFO` is asked for at most once in
        `CHECK_SECONDS`.
        """
        wait = CHECK_AGAIN_SECONDS if self._refused else CHECK_SECONDS
        if self._checked and time.monotonic() - self._checked < wait:
            if self._refused:
                raise StoreError(self._refused)
            return
        self._refused = self._fault()
        self._checked = time.monotonic()
        if self._refused:
            raise StoreError(self._refused)

    def _fault(self) -> str:
        """Return why the server cannot be used, empty if it can.

        The number of evicted keys counts from the first use of an empty database. The server counts
        from its own start, so the number is stored with the name of the server's run.
        """
        found = self._ask("INFO")
        policy = found.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            return f"Redis: {_EVICTS.format(policy)}"
        run = str(found.get("run_id", ""))
        evicted = int(found.get("evicted_keys", 0))
        key = f"{self._prefix}evictions"
        known_run, _, known = str(self._ask("GET", key) or "").partition(" ")
        if known_run != run:
            self._ask("SET", key, f"{run} {evicted}")
        elif evicted > int(known):
            return (
                f"Redis: the server has evicted {evicted - int(known)} keys, so that ids are"
                " missing; empty the database, and the histories are read again"
            )
        return ""

    def transact(self, step: Step[T]) -> T:
        """Run `step` over beliefs until they prove true and the script applies its writes."""
        with self._lock:
            self._check_eviction()
            now = self.now() if self._offset is None else _local() + self._offset
            while True:
                # The step's time is an estimate. The script refuses it if it is wrong by too much.
                made = Attempt(step, self._believed.reader, now)
                asked = orjson.dumps(
                    (self._prefix, now, CLOCK_TOLERANCE, _checks(made.tx), *_writes(made.tx))
                )
                with self._trip():
                    answer = self._run(_APPLY, asked)
                self._offset = int(answer[1]) - _local()
                if answer[0] == 1:
                    self._believed.learn_all(made.tx)
                    return made.end()
                now = int(answer[1])
                places = list(made.tx.reads())
                # Positions count the values of `_checks`, which has them in the order of `reads`.
                for at, value in zip(answer[2][::2], answer[2][1::2], strict=True):
                    self._believed.learn(places[int(at) - 1], value or None)

    @contextmanager
    def _trip(self) -> Iterator[None]:
        """Count a round trip, and turn the client's errors into `StoreError`.

        After an error it is unknown whether the step was applied, so all beliefs are dropped.
        """
        with self._lock:
            self._trips += 1
            try:
                yield
            except RedisError as error:
                self._believed.clear()
                raise StoreError(f"Redis: {error}") from error

    def _run(self, script: str, *arguments: str | bytes | int) -> Any:
        """Run a script. If the server has not cached it, send its text."""
        name = _NAMES[script]
        try:
            return self._redis.execute_command("EVALSHA", name, 0, *arguments)  # type: ignore[no-untyped-call]
        except NoScriptError:
            return self._redis.execute_command("EVAL", script, 0, *arguments)  # type: ignore[no-untyped-call]

    def _ask(self, *command: str | int) -> Any:
        """Run one command.

        The client's own methods are typed as if they might return awaitables, so this does not use
        them.
        """
        with self._trip():
            return self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # the client types it so

    def now(self) -> int:
        """Return the server's clock, and remember its difference from this machine's."""
        seconds, micros = self._ask("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        self._offset = now - _local()
        return now

    def due(self, limit: int) -> list[DueRow]:
        """Return the rows that are due."""
        self._check_eviction()
        with self._trip():
            found: list[str] = self._run(_DUE, self._prefix, limit)
        return [DueRow(*member.split("\0", 1)) for member in found]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Return a table in the order of its keys.

        Reads the whole table because hashes have no order.
        """
        found: dict[str, str] = self._ask("HGETALL", self._prefix + table)
        return sorted((key, value) for key, value in found.items() if key > after)[:limit]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return a set in the order of its members.

        Reads the whole set because SETs have no order.
        """
        found: set[str] = self._ask("SMEMBERS", set_name)
        return sorted(member for member in found if member > after)[:limit]

    def backlog(self) -> int:
        """Return the number of rows that have a due time."""
        return int(self._ask("ZCARD", f"{self._prefix}due"))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _checks(tx: Transaction) -> list[tuple[str, str, list[str], list[str]]]:
    """Return the values that a step has read, in the form in which the script compares them."""
    return [
        (kind, name, list(part.reads), [*map(_expected, part.reads.values())])
        for kind, name, part in tx.parts()
        if part.reads
    ]


Written = tuple[list[tuple[str, str, list[str], list[str]]], list[str], list[str]]
"""The arguments `writes`, `due` and `undue` of the script `_APPLY`."""


def _writes(tx: Transaction) -> Written:
    """Return the writes of a step in the form in which the script applies them."""
    written: list[tuple[str, str, list[str], list[str]]] = []
    due: list[str] = []
    undue: list[str] = []
    for kind, name, part in tx.parts():
        put: list[str] = []
        gone: list[str] = []
        for key, row in part.writes.items():
            if row is None:
                gone.append(key)
            elif kind == MEMBER:
                put.append(key)
            else:
                put += (key, row.value)
                if row.due is not None:
                    due += (str(max(row.due, 0) + row.lane * _LANE), f"{name}\0{key}")
                    continue
            if kind == ROW:
                undue.append(f"{name}\0{key}")
        if part.writes:
            written.append((kind, name, put, gone))
    return written, due, undue


def _local() -> int:
    """Return the machine's monotonic clock in ms."""
    return time.monotonic_ns() // 1_000_000


def _expected(value: str | None) -> str:
    """Return a value in the form in which the script compares it.

    A text that begins with `#` is hashed, too, because the script takes that sign for a hash.
    """
    if value is not None and (len(value) > LONG or value.startswith("#")):
        return "#" + hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
    return value or ""
