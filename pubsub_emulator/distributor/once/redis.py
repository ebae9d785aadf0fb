"""A store in Redis or Valkey: sets are SETs, steps are applied by one script.

A step runs here over beliefs. One script then compares every value that the step read with what is stored and, where
all are equal, applies every write; where one is not, it answers with the true values and the step runs again. So a step
costs one round trip where the beliefs were right.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import orjson
import redis
from redis.exceptions import NoScriptError, RedisError

from pubsub_emulator.database.errors import StoreError
from pubsub_emulator.distributor.once.beliefs import Attempt, Beliefs
from pubsub_emulator.distributor.once.transaction import MEMBER, ROW, DueRow, Step, Store, T, Transaction

VERSION: Final = 1
CLOCK_TOLERANCE: Final = 250
"""How far, in ms, a step's time may be from the server's when it is applied."""
LONG: Final = 64
"""Longer texts are compared by their SHA-1, so that they are not sent."""
LANES: Final = 2

_LANE: Final = 100_000_000_000_000
"""Scores of a lane begin at its number times this, far beyond any time in ms."""

# ARGV[1]: JSON [prefix, now, tolerance, checks, writes, due, undue]. `checks` has [kind, table, keys, expected] for
# each table or set: an empty text is an absent value, `#` before 40 hex digits is a SHA-1. `writes` has [kind, table,
# flat list of keys and values (of a set: its members), keys to remove]. `due` is a flat list of scores and rows,
# `undue` the written rows without a time. One argument is packed much faster than many, and one call for a table is
# much faster than one for each key. The answer is {1, time}, or {0, time, flat list of positions from 1 and true
# values}.
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
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', ARGV[1] .. 'due', from, to, 'LIMIT', 0, left)) do
      found[#found + 1] = member
      left = left - 1
    end
  end
end
return found
""".replace("LANES", str(LANES)).replace("LANE", str(_LANE))


_NAMES: Final = {each: hashlib.sha1(each.encode(), usedforsecurity=False).hexdigest() for each in (_APPLY, _DUE)}
"""Scripts by text, as the server names them."""


class RedisStore(Store):
    """SETs have the set's own name; everything else has keys below `prefix`. One database, not a cluster."""

    def __init__(self, url: str, prefix: str = "ied:") -> None:
        super().__init__()
        self._prefix = prefix
        self._offset: int | None = None
        self._believed = Beliefs()
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
            raise StoreError(f"Redis: maxmemory-policy is {policy}, which drops ids; set it to noeviction")
        self._ask("SET", f"{self._prefix}version", VERSION, "NX")
        version = int(self._ask("GET", f"{self._prefix}version") or 0)
        if version > VERSION:
            raise StoreError(f"Redis: made by a newer version (schema {version}, this one knows {VERSION})")

    def transact(self, step: Step[T]) -> T:
        """Run `step` over believed values until the script finds them to be true."""
        with self._lock:
            now = self.now() if self._offset is None else _local() + self._offset
            while True:
                made = Attempt(step, self._believed.reader, now)
                asked = orjson.dumps((self._prefix, now, CLOCK_TOLERANCE, _checks(made.tx), *_writes(made.tx)))
                with self._trip():
                    answer = self._run(_APPLY, asked)
                self._offset = int(answer[1]) - _local()
                if answer[0] == 1:
                    self._believed.learn_all(made.tx)
                    return made.end()
                now = int(answer[1])
                places = list(made.tx.reads())
                for at, value in zip(answer[2][::2], answer[2][1::2], strict=True):
                    self._believed.learn(places[int(at) - 1], value or None)

    @contextmanager
    def _trip(self) -> Iterator[None]:
        """A question to the server. Raises `StoreError`; nothing is believed after that."""
        with self._lock:
            self._trips += 1
            try:
                yield
            except RedisError as error:
                self._believed.clear()
                raise StoreError(f"Redis: {error}") from error

    def _run(self, script: str, *arguments: str | bytes | int) -> Any:
        """Run a script without keys; one that the server does not know is sent whole."""
        name = _NAMES[script]
        try:
            return self._redis.execute_command("EVALSHA", name, 0, *arguments)  # type: ignore[no-untyped-call]
        except NoScriptError:
            return self._redis.execute_command("EVAL", script, 0, *arguments)  # type: ignore[no-untyped-call]

    def _ask(self, *command: str | int) -> Any:
        """One command; the client types replies as maybe awaitable, so this does not use its methods."""
        with self._trip():
            return self._redis.execute_command(*command)  # type: ignore[no-untyped-call]  # the client types it so

    def now(self) -> int:
        """The server's clock."""
        seconds, micros = self._ask("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        self._offset = now - _local()
        return now

    def due(self, limit: int) -> list[DueRow]:
        """Rows whose time has come."""
        with self._trip():
            found: list[str] = self._run(_DUE, self._prefix, limit)
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
        """The number of rows that wait."""
        return int(self._ask("ZCARD", f"{self._prefix}due"))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _checks(tx: Transaction) -> list[tuple[str, str, list[str], list[str]]]:
    return [
        (kind, name, list(part.reads), [*map(_expected, part.reads.values())])
        for kind, name, part in tx.parts()
        if part.reads
    ]


Written = tuple[list[tuple[str, str, list[str], list[str]]], list[str], list[str]]


def _writes(tx: Transaction) -> Written:
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
    return time.monotonic_ns() // 1_000_000


def _expected(value: str | None) -> str:
    if value is not None and (len(value) > LONG or value.startswith("#")):
        return "#" + hashlib.sha1(value.encode(), usedforsecurity=False).hexdigest()
    return value or ""
