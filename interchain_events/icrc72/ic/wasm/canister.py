"""A canister that runs a WebAssembly module: `network.create(0, WasmCanister(wasm, arg))`.

A trap must undo the effects of its message, and a query must have none. The canister therefore
keeps a copy of its state as it was before the message, see `instance.State`, and stable memory has
a journal. After a trap or a query, the copy is written back, or the instance is thrown away if that
is not enough, and the next message gets a new one from the copy. An instance also ends with its
message if the module can change its tables or drop its segments: then no message can see whether
the one before was the first of its instance.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

import wasmtime

from interchain_events.icrc72.ic.canister import Answer, Canister, Context, Host
from interchain_events.icrc72.ic.errors import IcError, Trap
from interchain_events.icrc72.ic.principal import MANAGEMENT, Principal
from interchain_events.icrc72.ic.wasm.instance import Instance, InstanceLimits, State
from interchain_events.icrc72.ic.wasm.module import CALL, START, load
from interchain_events.icrc72.ic.wasm.stable_memory import StableMemory
from interchain_events.icrc72.ic.wasm.system import (
    RUNNING,
    Execution,
    Pending,
    linker,
    out_of_instructions,
)
from pubsub_emulator.primitives.hashing import blake2_256

NOTHING: Final = b"DIDL\0\0"
"""A Candid message without values, for a canister whose installation takes no argument."""
_LINES: Final = 1000
"""How many printed lines are kept."""


@dataclass(frozen=True, slots=True)
class WasmLimits:
    """The limits of one canister."""

    instructions: int = 1_000_000_000
    """The most instructions of one execution.

    The Internet Computer allows 40 billion for a message and 300 billion for an installation. With
    so many, a canister that hangs would keep this machine busy for minutes. One billion takes about
    a second.
    """
    memory_bytes: int = 64 << 20
    """The most bytes of the memory. The copy for traps takes as much again."""
    stable_bytes: int = 64 << 20
    """The most bytes of stable memory. The journal of a message can take as much again."""
    table_bytes: int = 512 << 10
    """The most bytes of all tables, of which an entry has eight."""
    changing_table_bytes: int = 16 << 10
    """The same for a module that can change its tables, which are then saved after each message."""
    call_bytes: int = 16 << 20
    """The most bytes of the calls of one execution. Each takes 1 KiB besides its argument.

    `ic0.call_perform` returns 2 for calls beyond it, as on the Internet Computer.
    """
    printed_bytes: int = 256 << 10
    """The most bytes of the printed lines that are kept."""


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
        self.call_bytes = self.limits.call_bytes
        self.module_hash = self.module.hash
        self.metadata = self.module.public
        self.heartbeat = "canister_heartbeat" in self.module.exports
        self.stable = StableMemory(self.limits.stable_bytes)
        self.certified = b""
        self.lines: deque[str] = deque(maxlen=_LINES)
        """The last lines that the canister has printed."""
        self._line_bytes = 0
        self._linker = linker(self.module)
        self._host: Host | None = None
        self._me = Principal()
        self._state = State()
        self._certified_before = b""
        self._changed = True
        """Whether the instance may differ from the copy of the state."""
        self._instance: Instance | None = self._fresh()

    def init(self, ctx: Context) -> None:
        """Run the start function and `canister_init` with the argument of the installation."""
        self._host = ctx.host
        self._me = ctx.me
        self._run("G", START, ctx)
        self._run("I", "canister_init", ctx, self.arg)

    def inspect(self, method: str, caller: Principal, arg: bytes) -> bool:
        """Return whether a user's request is admitted (IC-10).

        `canister_inspect_message` decides. A module without this function admits every request.
        """
        if "canister_inspect_message" not in self.module.exports:
            return True
        before = self.snapshot()
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
            # The network has made an equal snapshot just before, so it is no loss that this one
            # replaces it.
            before = self.snapshot()
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
        before = self.snapshot()
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
        if answer.ok:
            kind = "Y"
            callback = call.reply
        else:
            kind = "R"
            callback = call.reject
        self._run(kind, CALL, ctx, answer.data, caller=caller, answer=answer, callback=callback)

    def clean(self, call: Pending, caller: Principal, ctx: Context) -> None:
        """Execute the clean-up of a call whose callback trapped."""
        if call.cleanup is not None:
            self._run("C", CALL, ctx, caller=caller, callback=call.cleanup)

    def _run(
        self,
        kind: str,
        entry: str,
        ctx: Context,
        arg: bytes = b"",
        *,
        method: str = "",
        caller: Principal | None = None,
        answer: Answer | None = None,
        callback: tuple[int, int] | None = None,
    ) -> Execution:
        """Run a function of the module, and return the execution. Raises `Trap`.

        `kind` is a letter of the interface specification (see `system`), `entry` the name of an
        exported function, and `callback` the index and the argument of a callback. If the module
        does not export the function, nothing is executed.
        """
        fuel = self.limits.instructions
        execution = Execution(
            machine=self,
            kind=kind,
            ctx=ctx,
            caller=ctx.caller if caller is None else caller,
            arg=arg,
            method=method,
            fuel=fuel,
            answer=answer,
        )
        instance = self._live()
        function = instance.exports.get(entry)
        if callback is not None and function is None:
            raise Trap("the module has no table of callbacks")
        if not isinstance(function, wasmtime.Func):
            return execution
        arguments = () if callback is None else self._callback(*callback)
        self._changed = True
        instance.store.set_fuel(fuel)
        # The functions that the module calls find the execution there.
        RUNNING.now = execution
        try:
            function(instance.store, *arguments)
            execution.settle()
        except wasmtime.Trap as trap:
            raise Trap(_reason(trap, fuel)) from None
        except wasmtime.WasmtimeError as error:
            raise Trap(str(error).splitlines()[-1].strip()) from None
        finally:
            RUNNING.now = None
        execution.drop_call()
        return execution

    def _callback(self, index: int, argument: int) -> tuple[int, int]:
        """Return a callback's index and argument as signed integers, as wasmtime takes them.

        Raises `Trap` for an index that no table has.
        """
        if index >= 1 << 31:
            raise Trap(f"the table has no function {index}")
        half = 1 << 63 if self.module.wide else 1 << 31
        return index, (argument + half) % (2 * half) - half

    def _alone(self, caller: Principal) -> Context:
        """Return a context for a query or inspection, whose effects the network never sees."""
        if self._host is None:
            raise IcError("the canister is not installed")
        return Context(self._host, self._me, caller, self._host.clock(), answered=False)

    def store(self) -> wasmtime.Store:
        """Return the store of the instance."""
        return self._live().store

    def memory_address(self) -> int:
        """Return where the memory is in this process."""
        return self._live().memory_address()

    def memory_size(self) -> int:
        """Return the bytes of the memory. Raises `Trap` if the module has none."""
        instance = self._live()
        if instance.memory is None:
            raise Trap("the module has no memory")
        return instance.memory_size()

    def printed(self, line: str) -> None:
        """Record a printed line. It stays if the execution traps."""
        if len(self.lines) == _LINES:
            self._line_bytes -= len(self.lines.popleft())
        self.lines.append(line)
        self._line_bytes += len(line)
        while self._line_bytes > self.limits.printed_bytes:
            self._line_bytes -= len(self.lines.popleft())

    def _fresh(self) -> Instance:
        """Return a new instance of the module. Raises `IcError`."""
        changes = self.module.changes_tables
        tables = self.limits.changing_table_bytes if changes else self.limits.table_bytes
        return Instance(self.module, self._linker, InstanceLimits(self.limits.memory_bytes, tables))

    def _live(self) -> Instance:
        """Return the instance. If it was thrown away, make one from the copy of the state."""
        if self._instance is None:
            self._instance = self._fresh()
            self._state.write_to(self._instance)
        return self._instance

    def _throw_away(self) -> None:
        """Free the instance. The copy of the state stays."""
        if self._instance is not None:
            self._instance.close()
        self._instance = None
        self._changed = False

    def _roll_back(self) -> None:
        """Make the instance equal to the copy of the state, or throw it away.

        Copying the differences back is faster than making a new instance. It is not possible if the
        memory has grown, because it cannot shrink, or if tables or segments may have changed.
        """
        instance = self._instance
        if instance is None:
            return
        grown = instance.memory_size() != self._state.size
        if grown or self.module.changes_tables or self.module.drops_segments:
            self._throw_away()
        else:
            self._state.write_to(instance)
            self._changed = False

    def _commit(self) -> None:
        """Copy the state of the instance if it may have changed."""
        if self._changed and self._instance is not None:
            self._state.copy_from(self._instance)
            self._changed = False
            if self.module.changes_tables or self.module.drops_segments:
                self._throw_away()

    def snapshot(self) -> object:
        """Return the state before an execution. The next snapshot invalidates it."""
        self._commit()
        self.stable.commit()
        self._certified_before = self.certified
        return self._state

    def restore(self, snapshot: object) -> None:
        """Set the state back to the last snapshot."""
        if snapshot is not self._state:
            raise IcError("this is not a state of this canister")
        if self._changed:
            self._roll_back()
        self.stable.undo()
        self.certified = self._certified_before

    def state_bytes(self) -> bytes:
        """Return memory, globals, tables, stable memory and certified data as bytes."""
        self._commit()
        return b"".join((*self._state.parts(), self.stable.data, self.certified))

    def state_size(self) -> int:
        """Return the bytes of memory and stable memory."""
        size = self._state.size if self._instance is None else self._instance.memory_size()
        return size + self.stable.size

    def hand_over(self, ctx: Context) -> Instance:
        """Run `canister_pre_upgrade`, and return the instance after it. Raises `Trap`."""
        self._run("P", "canister_pre_upgrade", ctx)
        return self._live()

    def take_over(self, ctx: Context, former: Canister) -> bytes:
        """Continue the work of the module before an upgrade.

        Stable memory is kept. Memory is kept only if both modules are marked as persistent; the
        memory of the new module then grows if it is smaller, and the upgrade traps if it cannot.
        Returns a hash of the stable memory. If the upgrade traps, the former canister is restored.
        """
        if not isinstance(former, WasmCanister):
            raise Trap("only a module is upgraded to a module")
        self._host = ctx.host
        self._me = ctx.me
        before = former.snapshot()
        try:
            former_instance = former.hand_over(ctx)
            if former.stable.size > self.limits.stable_bytes:
                raise Trap(
                    f"the stable memory has {former.stable.size:,} bytes, the new code may have"
                    f" {self.limits.stable_bytes:,}"
                )
            self.stable = StableMemory(self.limits.stable_bytes, former.stable)
            self.certified = former.certified
            if self.module.persistent and former.module.persistent:
                self._live().set_memory(
                    former_instance.memory_address(), former_instance.memory_size()
                )
                self._changed = True
            self._run("G", START, ctx)
            self._run("I", "canister_post_upgrade", ctx, self.arg)
        except IcError as error:
            former.restore(before)
            raise Trap(str(error)) from error
        return blake2_256(self.stable.data)


def _reason(trap: wasmtime.Trap, fuel: int) -> str:
    """Return the reason of a trap. wasmtime's own text has addresses, which differ between runs."""
    if trap.trap_code is None:
        return "IC0502: trap"
    if trap.trap_code is wasmtime.TrapCode.OUT_OF_FUEL:
        return out_of_instructions(fuel)
    return f"IC0502: {trap.trap_code.name.lower().replace('_', ' ')}"
