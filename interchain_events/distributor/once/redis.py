"""A store in Redis or Valkey, in which each step is applied by one script.

The store's sets are SETs, its tables are hashes, and the due rows are a sorted set.

A step runs in this process over beliefs (see `beliefs`). A script then compares every value that
the step has read with the stored one. If all are equal, it applies the writes. Otherwise it returns
the stored values, and the step runs again. So a step costs one round trip if the beliefs are right.
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
"""The interval at which the server's settings are checked. Each new connection checks them, too."""
CHECK_AGAIN_SECONDS: Final = 1.0
"""The wait before a refused server is checked again."""
CLOCK_TOLERANCE: Final = 250
"""The greatest difference, in ms, between a step's time and the server's clock.

The process estimates the server's time instead of asking for it before each step. The script
refuses a step whose estimate is too far off.
"""
LONG: Final = 64
"""Texts with more characters are compared by their SHA-1 hash, so that they need not be sent."""
LANES: Final = 2
"""The number of lanes that `due` lists."""

_EVICTS: Final = "maxmemory-policy is {}, which drops ids; set it to noeviction"
_LANE: Final = 100_000_000_000_000
"""The score of a due row is its lane times this number, plus its time.

The number exceeds any time in ms, so rows are listed in the order of their scores.
"""

# ARGV[1] is the JSON of [prefix, now, tolerance, checks, writes, due, undue]:
#
# - checks has [kind, table, keys, expected values] for each table or set. An empty text stands for
#   an absent value, and `#` with 40 hex digits for a SHA-1 hash.
# - writes has [kind, table, keys and values, keys to remove] for each table or set. Keys and values
#   alternate. A set has its members in their place.
# - due has scores and rows, which alternate.
# - undue has the written rows that have no due time.
#
# The answer is {1, time} if the writes were applied. Otherwise it is {0, time, list}. In the list,
# the positions of the wrong values, counted from 1, and the stored values alternate.
#
# One JSON text is packed much faster than many arguments, and one call for a table is much faster
# than one for each key.
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
    script: hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
    for script in (_APPLY, _DUE)
}
"""The SHA-1 hash of each script, under which the server caches it."""


class RedisStore(Store):
    """A store in one Redis database. Clusters are not supported.

    The SETs have the names of the store's sets. All other keys begin with `prefix`. Raises
    `StoreError`.
    """

    def __init__(self, url: str, prefix: str = "ied:") -> None:
        super().__init__()
        self._prefix = prefix
        self._offset: int | None = None
        """The server's clock minus this machine's monotonic clock, in ms. `None` before the first
        answer."""
        self._believed = Beliefs()
        self._refused = ""
        """The reason why the server is not used, empty if it is."""
        self._checked = 0.0
        """The time of the monotonic clock, in seconds, at which the server's settings were last
        checked."""
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
        """Set up a new connection, and check the server's settings before its first use.

        The server may have been replaced or restarted since the last connection. Raises
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
        """Raise `StoreError` if the server may evict keys, or has evicted some.

        The settings may change while the server runs, so this precedes each use. It asks the server
        only once in `CHECK_SECONDS`.
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
        """Return the reason why the server cannot be used, empty if it can.

        The server counts its evictions from its own start. So their number at the first check of
        each run of the server is stored, and any later eviction is a fault. Emptying the database
        ends the fault, because it also removes the stored number.
        """
        info = self._ask("INFO")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            return f"Redis: {_EVICTS.format(policy)}"
        run = str(info.get("run_id", ""))
        evicted = int(info.get("evicted_keys", 0))
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
                attempt = Attempt(step, self._believed.reader, now)
                tx = attempt.tx
                argument = orjson.dumps(
                    (self._prefix, now, CLOCK_TOLERANCE, _checks(tx), *_writes(tx))
                )
                with self._trip():
                    answer = self._run(_APPLY, argument)
                now = int(answer[1])
                self._offset = now - _local()
                if answer[0] == 1:
                    self._believed.learn_all(tx)
                    return attempt.end()
                wrong = answer[2]
                places = list(tx.reads())
                # Positions count the values of `_checks`, which has them in the order of `reads`.
                for position, value in zip(wrong[::2], wrong[1::2], strict=True):
                    self._believed.learn(places[int(position) - 1], value or None)

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
        """Run a script by its hash. If the server has not cached it, send its text."""
        name = _NAMES[script]
        try:
            return self._redis.execute_command("EVALSHA", name, 0, *arguments)  # type: ignore[no-untyped-call]
        except NoScriptError:
            return self._redis.execute_command("EVAL", script, 0, *arguments)  # type: ignore[no-untyped-call]

    def _ask(self, *command: str | int) -> Any:
        """Run one command.

        The client has methods for commands, but they are typed as if they might return awaitables.
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
            members: list[str] = self._run(_DUE, self._prefix, limit)
        return [DueRow(*member.split("\0", 1)) for member in members]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """Return a table in the order of its keys.

        Reads the whole table, because hashes have no order.
        """
        table_rows: dict[str, str] = self._ask("HGETALL", self._prefix + table)
        return sorted((key, value) for key, value in table_rows.items() if key > after)[:limit]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """Return a set in the order of its members.

        Reads the whole set, because SETs have no order.
        """
        all_members: set[str] = self._ask("SMEMBERS", set_name)
        return sorted(member for member in all_members if member > after)[:limit]

    def backlog(self) -> int:
        """Return the number of rows that have a due time."""
        return int(self._ask("ZCARD", f"{self._prefix}due"))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _checks(tx: Transaction) -> list[tuple[str, str, list[str], list[str]]]:
    """Return the values that a step has read, in the form in which the script compares them."""
    return [
        (kind, name, list(buffer.reads), list(map(_expected, buffer.reads.values())))
        for kind, name, buffer in tx.buffers()
        if buffer.reads
    ]


Written = tuple[list[tuple[str, str, list[str], list[str]]], list[str], list[str]]
"""The arguments `writes`, `due` and `undue` of the script `_APPLY`."""


def _writes(tx: Transaction) -> Written:
    """Return the writes of a step in the form in which the script applies them."""
    writes: list[tuple[str, str, list[str], list[str]]] = []
    due: list[str] = []
    undue: list[str] = []
    for kind, name, buffer in tx.buffers():
        written: list[str] = []
        removed: list[str] = []
        for key, row in buffer.writes.items():
            if row is None:
                removed.append(key)
            elif kind == MEMBER:
                written.append(key)
            else:
                written += (key, row.value)
            # Members of sets never have due times.
            if row is not None and row.due is not None:
                due += (str(max(row.due, 0) + row.lane * _LANE), f"{name}\0{key}")
            elif kind == ROW:
                undue.append(f"{name}\0{key}")
        if buffer.writes:
            writes.append((kind, name, written, removed))
    return writes, due, undue


def _local() -> int:
    """Return the machine's monotonic clock in ms."""
    return time.monotonic_ns() // 1_000_000


def _expected(value: str | None) -> str:
    """Return a value in the form in which the script compares it: the text or its SHA-1 hash.

    A text that begins with `#` is hashed whatever its length, because to the script that sign
    begins a hash.
    """
    if value is not None and (len(value) > LONG or value.startswith("#")):
        return "#" + hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
    return value or ""
