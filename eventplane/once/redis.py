"""A store in Redis or Valkey: sets are SETs, steps are applied by one script.

A step runs here over values that this process believes: those it wrote or read last, and absence. One script then
compares every value that the step read with what is stored and, where all are equal, applies every write; where one is
not, it answers with the true values and the step runs again. So a step costs one round trip where the belief was right,
and what is applied is always what the step makes of the stored values.
"""

import hashlib
import json
import time
from collections import OrderedDict
from threading import RLock
from typing import Any, Final

import redis
from redis.exceptions import NoScriptError, RedisError

from pubsub_emulator.eventplane.once.transaction import DueRow, Place, Row, Step, StoreError, T, Transaction

VERSION: Final = 1
CLOCK_TOLERANCE: Final = 250
"""How far, in ms, a step's time may be from the server's when it is applied."""
BELIEVED: Final = 20_000
"""Values kept in this process, at most."""
LONG: Final = 64
"""Longer texts are compared by their SHA-1, so that they are not sent."""
LANES: Final = 2

_LANE: Final = 100_000_000_000_000
"""Scores of a lane begin at its number times this, far beyond any time in ms."""

# ARGV[1]: JSON [prefix, now, tolerance, [[kind, table, key, expected], …], [[kind, table, key, value, score], …]].
# An empty text is an absent value; `#` before 40 hex digits is a SHA-1. One argument is packed much faster than many.
_APPLY: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local asked = cjson.decode(ARGV[1])
local prefix = asked[1]
local wrong = math.abs(now - asked[2]) > asked[3]
local found = {}
for i, check in ipairs(asked[4]) do
  local value
  if check[1] == 's' then
    value = redis.call('SISMEMBER', check[2], check[3]) == 1 and '1' or ''
  else
    value = redis.call('HGET', prefix .. check[2], check[3]) or ''
  end
  found[i] = value
  local expected = check[4]
  if string.sub(expected, 1, 1) == '#' then
    if '#' .. redis.sha1hex(value) ~= expected then wrong = true end
  elseif value ~= expected then
    wrong = true
  end
end
if wrong then return {0, now, found} end
for _, write in ipairs(asked[5]) do
  local tbl, key, value, score = write[2], write[3], write[4], write[5]
  if write[1] == 's' then
    if value == '' then redis.call('SREM', tbl, key) else redis.call('SADD', tbl, key) end
  else
    if value == '' then
      redis.call('HDEL', prefix .. tbl, key)
    else
      redis.call('HSET', prefix .. tbl, key, value)
    end
    local member = tbl .. '\\0' .. key
    if score ~= '' then
      redis.call('ZADD', prefix .. 'due', score, member)
    else
      redis.call('ZREM', prefix .. 'due', member)
    end
  end
end
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
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', ARGV[1] .. 'due', from, to, 'LIMIT', 0, left)) do
      found[#found + 1] = member
      left = left - 1
    end
  end
end
return found
""".replace("LANES", str(LANES)).replace("LANE", str(_LANE))


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NAMES: Final = {each: hashlib.sha1(each.encode(), usedforsecurity=False).hexdigest() for each in (_APPLY, _DUE)}
"""Scripts by text, as the server names them."""


class RedisStore:
    """SETs have the set's own name; everything else has keys below `prefix`. One database, not a cluster."""

    def __init__(self, url: str, prefix: str = "ied:") -> None:
        self._lock = RLock()
        self._prefix = prefix
        self._trips = 0
        self._offset: int | None = None
        self._believed: OrderedDict[Place, str | None] = OrderedDict()
        try:
            self._redis = redis.Redis.from_url(
                url, decode_responses=True, socket_timeout=10, socket_connect_timeout=5, single_connection_client=True
            )
        except (ValueError, RedisError) as error:
            raise StoreError(f"Redis: {error}") from error
        self._check()

    def _check(self) -> None:
        """Refuse a server that throws data away, and data of a newer version."""
        policy = self._ask("INFO", "memory").get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(f"Redis: maxmemory-policy is {policy}, which throws ids away; it must be noeviction")
        self._ask("SET", f"{self._prefix}version", VERSION, "NX")
        version = int(self._ask("GET", f"{self._prefix}version") or 0)
        if version > VERSION:
            raise StoreError(f"Redis: made by a newer version (schema {version}, this one knows {VERSION})")

    def transact(self, step: Step[T]) -> T:
        """Run `step` over believed values until the script finds them to be true."""
        with self._lock:
            now = self._clock()
            while True:
                tx = Transaction(self._believe, now)
                failure: Exception | None = None
                result: T | None = None
                try:
                    result = step(tx)
                except Exception as error:  # noqa: BLE001  # raised below, if what the step read is true
                    failure = error
                    tx.writes.clear()
                answer = self._send(tx)
                self._offset = int(answer[1]) - _local()
                if answer[0] == 1:
                    self._learn(tx)
                    if failure is not None:
                        raise failure
                    return result  # type: ignore[return-value]  # a step without failure returned a T
                now = int(answer[1])
                for place, value in zip(tx.reads, answer[2], strict=True):
                    self._keep(place, value or None)

    def _send(self, tx: Transaction) -> Any:
        asked = (
            self._prefix,
            tx.now,
            CLOCK_TOLERANCE,
            [(*place, _expected(value)) for place, value in tx.reads.items()],
            [_write(place, row) for place, row in tx.writes.items()],
        )
        text = _ENCODER.encode(asked)
        self._trips += 1
        try:
            return self._run(_APPLY, text)
        except RedisError as error:
            self._believed.clear()
            raise StoreError(f"Redis: {error}") from error

    def _run(self, script: str, *arguments: str | int) -> Any:
        """Run a script without keys; one that the server does not know is sent whole."""
        name = _NAMES[script]
        try:
            return self._redis.execute_command("EVALSHA", name, 0, *arguments)  # type: ignore[no-untyped-call]
        except NoScriptError:
            return self._redis.execute_command("EVAL", script, 0, *arguments)  # type: ignore[no-untyped-call]

    def _believe(self, place: Place) -> str | None:
        return self._believed.get(place)

    def _keep(self, place: Place, value: str | None) -> None:
        self._believed[place] = value
        self._believed.move_to_end(place)
        if len(self._believed) > BELIEVED:
            self._believed.popitem(last=False)

    def _learn(self, tx: Transaction) -> None:
        for place, value in tx.reads.items():
            self._keep(place, value)
        for place, row in tx.writes.items():
            self._keep(place, None if row is None else row.value)

    def _clock(self) -> int:
        if self._offset is None:
            return self.now()
        return _local() + self._offset

    def _ask(self, *command: str | int) -> Any:
        """One command; the client types replies as maybe awaitable, so this does not use its methods."""
        self._trips += 1
        try:
            with self._lock:
                return self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # the client types it so
        except RedisError as error:
            raise StoreError(f"Redis: {error}") from error

    def now(self) -> int:
        """The server's clock."""
        seconds, micros = self._ask("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        self._offset = now - _local()
        return now

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come."""
        self._trips += 1
        try:
            with self._lock:
                found: list[str] = self._run(_DUE, self._prefix, limit)
        except RedisError as error:
            raise StoreError(f"Redis: {error}") from error
        return [DueRow(*member.split("\0", 1)) for member in found]

    def rows(self, table: str, after: str = "", limit: int = 1000) -> list[tuple[str, str]]:
        """A table in order of its keys; reads the whole table."""
        found: dict[str, str] = self._ask("HGETALL", self._prefix + table)
        return sorted((key, value) for key, value in found.items() if key > after)[:limit]

    def members(self, set_name: str, after: str = "", limit: int = 1000) -> list[str]:
        """A set in order of its members; reads the whole set."""
        found: set[str] = self._ask("SMEMBERS", set_name)
        return sorted(member for member in found if member > after)[:limit]

    def backlog(self) -> int:
        """How many rows wait."""
        return int(self._ask("ZCARD", f"{self._prefix}due"))

    def trips(self) -> int:
        """Commands and scripts sent."""
        return self._trips

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _write(place: Place, row: Row | None) -> tuple[str, str, str, str, str]:
    if row is None:
        return (*place, "", "")
    return (*place, row.value, "" if row.due is None else str(max(row.due, 0) + row.lane * _LANE))


def _local() -> int:
    return time.monotonic_ns() // 1_000_000


def _expected(value: str | None) -> str:
    if value is None:
        return ""
    if len(value) > LONG or value.startswith("#"):
        return "#" + hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
    return value
