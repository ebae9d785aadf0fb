"""A canister that runs a WebAssembly module: `network.create(0, WasmCanister(wasm, arg))`.

A trap must undo the effects of its message. Memory and globals are copied before each message, so a
canister takes twice its memory, and stable memory has a journal. Tables are not copied, because
compilers fill them once and modules do not change them.
"""

import ctypes
from collections import deque
from dataclasses import dataclass
from typing import Final, NamedTuple

import wasmtime

from interchain_events.icrc72.ic.canister import Answer, Canister, Context, Host
from interchain_events.icrc72.ic.errors import IcError, Trap
from interchain_events.icrc72.ic.principal import MANAGEMENT, Principal
from interchain_events.icrc72.ic.wasm.module import MEMORY, START, TABLE, engine, load
from interchain_events.icrc72.ic.wasm.stable_memory import StableMemory
from interchain_events.icrc72.ic.wasm.system import RUNNING, Execution, Pending, linker
from pubsub_emulator.primitives.hashing import blake2_256

NOTHING: Final = b"DIDL\0\0"
"""A Candid message without values, for a canister whose installation takes no argument."""
_PAGE: Final = 1 << 16
"""The bytes of a page of memory."""
_LINES: Final = 1000
"""How many printed lines are kept."""


@dataclass(frozen=True, slots=True)
class WasmLimits:
    """The limits of one canister."""

    instructions: int = 2_000_000_000
    """The most instructions of one execution.

    The Internet Computer allows 40 billion for a message and 300 billion for an installation. With
    so many, a canister that hangs would keep this machine busy for minutes.
    """
    memory_bytes: int = 4 << 30
    stable_bytes: int = 1 << 30


class _Kept(NamedTuple):
    """A copy of a canister's state, by which an execution can be undone."""

    memory: bytearray
    globals: tuple[int | float, ...]
    stable: tuple[int, int]
    """A mark in the journal of the stable memory."""
    certified: bytes


class WasmCanister(Canister):
    """A canister that runs a module."""

    def __init__(self, wasm: bytes, arg: bytes = NOTHING, limits: WasmLimits | None = None) -> None:
        """Load a `.wasm` or `.wasm.gz`; `arg` is the Candid argument of installation or upgrade.

        Raises `ModuleError` if it is not a usable module, and `IcError` if it cannot be
        instantiated.
        """
        self.module = load(bytes(wasm))
        self.arg = arg
        self.limits = limits or WasmLimits()
        self.module_hash = self.module.hash
        self.metadata = self.module.public
        self.heartbeat = "canister_heartbeat" in self.module.exports
        self.stable = StableMemory(self.limits.stable_bytes)
        self.certified = b""
        self.lines: deque[str] = deque(maxlen=_LINES)
        """The last lines that the canister has printed."""
        self._linker = linker(self.module)
        self._host: Host | None = None
        self._me = Principal()
        # Buffers for copies of the memory, one for messages and one for queries, which may be
        # executed between a snapshot and its restoration. They are reused: new ones would cost time
        # and memory.
        self._before, self._aside = bytearray(), bytearray()
        self._store, self._instance = self._fresh()

    def init(self, ctx: Context) -> None:
        """Run the start function and `canister_init` with the argument of the installation."""
        self._host, self._me = ctx.host, ctx.me
        self._run("G", START, ctx)
        self._run("I", "canister_init", ctx, self.arg)

    def inspect(self, method: str, caller: Principal, arg: bytes) -> bool:
        """Return whether a user's request is admitted (IC-10).

        `canister_inspect_message` decides. A module without this function admits every request.
        """
        if "canister_inspect_message" not in self.module.exports:
            return True
        before = self._keep(self._aside)
        try:
            return self._run(
                "F", "canister_inspect_message", self._alone(caller), arg, method=method
            ).let_in
        except Trap:
            return False
        finally:
            self.restore(before)

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Execute an update, or a query that is called like one and changes nothing.

        Raises `Trap` if the module exports no such method, or it traps.
        """
        if f"canister_update {method}" in self.module.exports:
            self._run("U", f"canister_update {method}", ctx, arg, caller=ctx.caller)
        elif f"canister_query {method}" in self.module.exports:
            before = self._keep(self._aside)
            try:
                self._run("Q", f"canister_query {method}", ctx, arg)
            finally:
                self.restore(before)
        else:
            raise Trap(f"IC0536: there is no method {method}")

    def query(self, caller: Principal, _time: int, method: str, arg: bytes) -> bytes:
        """Answer a query at the time of the canister's subnet.

        Raises `Trap` if the module exports no such query, or it traps, rejects or does not answer.
        """
        for name in (f"canister_query {method}", f"canister_composite_query {method}"):
            if name in self.module.exports:
                break
        else:
            raise Trap(f"IC0536: there is no query {method}")
        ctx = self._alone(caller)
        before = self._keep(self._aside)
        try:
            self._run("Q", name, ctx, arg)
        finally:
            self.restore(before)
        if ctx.answer is None:
            raise Trap("IC0506: the canister did not answer")
        if not ctx.answer.ok:
            raise Trap(f"rejected: {ctx.answer.message}")
        return ctx.answer.data

    def on_timer(self, ctx: Context) -> None:
        """Run `canister_global_timer`."""
        self._run("H", "canister_global_timer", ctx, caller=MANAGEMENT)

    def on_heartbeat(self, ctx: Context) -> None:
        """Run `canister_heartbeat`."""
        self._run("H", "canister_heartbeat", ctx, caller=MANAGEMENT)

    def back(self, call: Pending, caller: Principal, ctx: Context, answer: Answer) -> None:
        """Execute the reply or reject callback of a call that has ended."""
        kind, (function, env) = ("Y", call.reply) if answer.ok else ("R", call.reject)
        self._run(
            kind, self._function(function), ctx, answer.data, caller=caller, answer=answer, env=env
        )

    def clean(self, call: Pending, caller: Principal, ctx: Context) -> None:
        """Execute the clean-up of a call whose callback trapped."""
        if call.cleanup is not None:
            self._run("C", self._function(call.cleanup[0]), ctx, caller=caller, env=call.cleanup[1])

    def _function(self, index: int) -> wasmtime.Func:
        """Return a function of the module's table. Raises `Trap` if there is none at this index."""
        table = self._instance.exports(self._store).get(TABLE)
        found = (
            table.get(self._store, index)
            if isinstance(table, wasmtime.Table) and index < 1 << 31
            else None
        )
        if not isinstance(found, wasmtime.Func):
            raise Trap(f"the table has no function {index}")
        return found

    def _run(
        self,
        kind: str,
        entry: str | wasmtime.Func,
        ctx: Context,
        arg: bytes = b"",
        *,
        method: str = "",
        caller: Principal | None = None,
        answer: Answer | None = None,
        env: int | None = None,
    ) -> Execution:
        """Run a function of the module, and return the execution. Raises `Trap`.

        `kind` is a letter of the interface specification (see `system`), `entry` a function or its
        exported name, and `env` the argument of a callback. If the module does not export the name,
        this does nothing.
        """
        fuel = self.limits.instructions
        who = ctx.caller if caller is None else caller
        now = Execution(self, kind, ctx, who, arg, method, fuel, answer)
        if isinstance(entry, str) and entry not in self.module.exports:
            return now
        function = self._instance.exports(self._store)[entry] if isinstance(entry, str) else entry
        if not isinstance(function, wasmtime.Func):
            raise Trap(f"{entry} is no function")
        self._store.set_fuel(fuel)
        RUNNING.now = now
        try:
            function(self._store, *(() if env is None else (env,)))
        except wasmtime.Trap as trap:
            raise Trap(_words(trap, fuel)) from None
        except wasmtime.WasmtimeError as error:
            raise Trap(str(error).splitlines()[-1].strip()) from None
        finally:
            RUNNING.now = None
        now.finish()
        return now

    def _alone(self, caller: Principal) -> Context:
        """Return a context for a query or inspection, whose effects the network never sees."""
        if self._host is None:
            raise IcError("the canister is not installed")
        return Context(self._host, self._me, caller, self._host.clock(), answered=False)

    def store(self) -> wasmtime.Store:
        """Return the store of the instance."""
        return self._store

    def memory(self) -> wasmtime.Memory:
        """Return the memory. Raises `Trap` if the module has none."""
        found = self._instance.exports(self._store).get(MEMORY)
        if not isinstance(found, wasmtime.Memory):
            raise Trap("the module has no memory")
        return found

    def printed(self, line: str) -> None:
        """Record a printed line. It stays if the execution traps."""
        self.lines.append(line)

    def _fresh(self) -> tuple[wasmtime.Store, wasmtime.Instance]:
        """Return a new instance of the module and its store. Raises `IcError`."""
        store = wasmtime.Store(engine())
        store.set_limits(memory_size=self.limits.memory_bytes)
        store.set_fuel(self.limits.instructions)
        try:
            return store, self._linker.instantiate(store, self.module.code)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raise IcError(
                f"the module cannot be instantiated: {str(error).splitlines()[-1].strip()}"
            ) from None

    def _has_memory(self) -> bool:
        return MEMORY in self._instance.exports(self._store)

    def _read(self, into: bytearray) -> bytearray:
        """Copy the memory into a buffer, whose size is adjusted, and return the buffer."""
        memory = self.memory() if self._has_memory() else None
        size = 0 if memory is None else memory.data_len(self._store)
        if len(into) != size:
            into[:] = bytes(size)
        if memory is not None:
            ctypes.memmove(_place(into), memory.data_ptr(self._store), size)
        return into

    def _fill(self, data: bytearray) -> None:
        """Set the memory to a copy.

        Memory cannot shrink. If it has grown since, a new instance takes the place of the old one.
        """
        if not self._has_memory():
            return
        if self.memory().data_len(self._store) > len(data):
            self._store, self._instance = self._fresh()
        memory = self.memory()
        lacks = len(data) - memory.data_len(self._store)
        if lacks:
            memory.grow(self._store, lacks // _PAGE)
        ctypes.memmove(memory.data_ptr(self._store), _place(data), len(data))

    def _globals(self) -> list[wasmtime.Global]:
        """Return the mutable globals, which `module` has exported."""
        exports = self._instance.exports(self._store)
        found = [exports[name] for name in self.module.globals]
        return [each for each in found if isinstance(each, wasmtime.Global)]

    def _keep(self, memory: bytearray) -> _Kept:
        """Copy the state, with the memory in this buffer."""
        values = tuple(each.value(self._store) for each in self._globals())
        return _Kept(self._read(memory), values, self.stable.mark(), self.certified)

    def snapshot(self) -> object:
        """Return the state before an execution. The next snapshot invalidates it."""
        self.stable.commit()
        return self._keep(self._before)

    def restore(self, snapshot: object) -> None:
        """Set the state back to the last snapshot."""
        if not isinstance(snapshot, _Kept):
            raise IcError("this is no state of a module")
        self._fill(snapshot.memory)
        for each, value in zip(self._globals(), snapshot.globals, strict=True):
            each.set_value(self._store, value)
        self.stable.undo(snapshot.stable)
        self.certified = snapshot.certified

    def state_bytes(self) -> bytes:
        """Return memory, globals, stable memory and certified data as bytes."""
        values = repr([each.value(self._store) for each in self._globals()]).encode()
        return b"".join((self._read(bytearray()), values, self.stable.data, self.certified))

    def hand_over(self, ctx: Context) -> bytearray:
        """Run `canister_pre_upgrade`, and return the memory after it."""
        self._run("P", "canister_pre_upgrade", ctx)
        return self._read(bytearray())

    def take_over(self, ctx: Context, former: Canister) -> bytes:
        """Continue the work of the module before an upgrade.

        Stable memory is kept. Memory is kept only if both modules are marked as persistent. Returns
        a hash of the stable memory. If the upgrade traps, the former canister is restored.
        """
        if not isinstance(former, WasmCanister):
            raise Trap("only a module is upgraded to a module")
        self._host, self._me = ctx.host, ctx.me
        before = former.snapshot()
        try:
            memory = former.hand_over(ctx)
            self.stable = StableMemory(self.limits.stable_bytes, bytes(former.stable.data))
            self.certified = former.certified
            if self.module.persistent and former.module.persistent:
                self._fill(memory)
            self._run("G", START, ctx)
            self._run("I", "canister_post_upgrade", ctx, self.arg)
        except Trap:
            former.restore(before)
            raise
        return blake2_256(bytes(self.stable.data))


def _place(data: bytearray) -> "ctypes.Array[ctypes.c_char]":
    """Return a view of a buffer that `ctypes.memmove` can use."""
    return (ctypes.c_char * len(data)).from_buffer(data)


def _words(trap: wasmtime.Trap, fuel: int) -> str:
    """Return the reason of a trap. wasmtime's own text has addresses, which differ between runs."""
    if trap.trap_code is wasmtime.TrapCode.OUT_OF_FUEL:
        return f"IC0522: more than {fuel} instructions"
    name = trap.trap_code.name.lower().replace("_", " ") if trap.trap_code is not None else "trap"
    return f"IC0502: {name}"
