"""The system's functions that a module imports from `ic0`, for the execution that is under way.

Each has a signature (`I` is an address: 32 or 64 bits as the module's memory has it, `i` 32 and `j` 64 bits), the kinds
of executions in which it may be called, and a method. The kinds are letters as in the interface specification: G start,
I init and post-upgrade, P pre-upgrade, U update, H heartbeat and timer, Q query, F inspect, Y reply and R reject
callback, C clean-up. Where the kind is another one, the execution traps.
"""

# ruff: noqa: D102  # functions of the system are described by the interface specification
import atexit
import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final, Protocol

import wasmtime

from pubsub_emulator.icrc72.ic.canister import BOUNDED, GUARANTEED, Answer, Context
from pubsub_emulator.icrc72.ic.errors import PrincipalError, Trap
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.wasm.module import Module, ModuleError, engine
from pubsub_emulator.icrc72.ic.wasm.stable_memory import PAGE, StableMemory
from pubsub_emulator.primitives.shown import safe

_ANY: Final = "GIPUHQFYRC"
_CALLS: Final = "UHYR"
_NARROW: Final = (1 << 32) - 1
_WIDE: Final = (1 << 64) - 1
_STATUS: Final = {"running": 1, "stopping": 2, "stopped": 3}
_CERTIFIED: Final = 32
_NOBODY: Final = 1 << 31
"""From here on the table of a module has no functions."""


class Machine(Protocol):
    """A canister as its executions see it."""

    stable: StableMemory
    certified: bytes

    def store(self) -> wasmtime.Store:
        """The store of its instance."""

    def memory(self) -> wasmtime.Memory:
        """Its memory. Raises `Trap` where the module has none."""

    def back(self, call: "Pending", caller: Principal, ctx: Context, answer: Answer) -> None:
        """Execute the callback of a call."""

    def clean(self, call: "Pending", caller: Principal, ctx: Context) -> None:
        """Execute the clean-up of a call whose callback trapped."""

    def printed(self, line: str) -> None:
        """Keep a line that was printed."""


@dataclass(slots=True)
class Pending:
    """A call that is being made."""

    receiver: Principal
    method: str
    reply: tuple[int, int]
    reject: tuple[int, int]
    cleanup: tuple[int, int] | None = None
    arg: bytearray = field(default_factory=bytearray)
    cycles: int = 0
    timeout: int | None = None


@dataclass(slots=True)
class Execution:
    """One execution of a canister's code."""

    machine: Machine
    kind: str
    ctx: Context
    caller: Principal
    arg: bytes
    method: str
    fuel: int
    answer: Answer | None = None
    reply: bytearray = field(default_factory=bytearray)
    call: Pending | None = None
    let_in: bool = False

    # Memory

    def bytes_at(self, at: int, size: int) -> bytes:
        """Bytes of the canister's memory. Raises `Trap` where there are none."""
        return ctypes.string_at(self._place(at, size), size)

    def save(self, at: int, data: bytes) -> None:
        """Write into the canister's memory. Raises `Trap` where there is none."""
        ctypes.memmove(self._place(at, len(data)), data, len(data))

    def _place(self, at: int, size: int) -> int:
        memory, store = self.machine.memory(), self.machine.store()
        if at + size > memory.data_len(store):
            raise Trap(f"{size} bytes at {at} are outside the memory")
        return ctypes.addressof(memory.data_ptr(store).contents) + at

    def _copy(self, data: bytes, to: int, at: int, size: int) -> None:
        if at + size > len(data):
            raise Trap(f"{size} bytes from {at} on are asked for, there are {len(data)}")
        self.save(to, data[at : at + size])

    def _low(self, number: int) -> int:
        if number > _WIDE:
            raise Trap(f"{number} cycles do not fit into 64 bits")
        return number

    def _save_cycles(self, number: int, to: int) -> None:
        self.save(to, number.to_bytes(16, "little"))

    # The message

    def msg_arg_data_size(self) -> int:
        return len(self.arg)

    def msg_arg_data_copy(self, to: int, at: int, size: int) -> None:
        self._copy(self.arg, to, at, size)

    def msg_caller_size(self) -> int:
        return len(self.caller)

    def msg_caller_copy(self, to: int, at: int, size: int) -> None:
        self._copy(self.caller, to, at, size)

    def msg_method_name_size(self) -> int:
        return len(self.method.encode())

    def msg_method_name_copy(self, to: int, at: int, size: int) -> None:
        self._copy(self.method.encode(), to, at, size)

    def accept_message(self) -> None:
        if self.let_in:
            raise Trap("the message was accepted before")
        self.let_in = True

    def msg_reject_code(self) -> int:
        return 0 if self.answer is None else self.answer.code

    def msg_reject_msg_size(self) -> int:
        return len(self._rejection())

    def msg_reject_msg_copy(self, to: int, at: int, size: int) -> None:
        self._copy(self._rejection(), to, at, size)

    def _rejection(self) -> bytes:
        return b"" if self.answer is None else self.answer.message.encode()

    def msg_deadline(self) -> int:
        return self.ctx.deadline

    def msg_reply_data_append(self, at: int, size: int) -> None:
        if self.ctx.answered:
            raise Trap("there is no call to answer, or it was answered")
        self.ctx.bound(len(self.reply) + size)
        self.reply += self.bytes_at(at, size)

    def msg_reply(self) -> None:
        self.ctx.reply(bytes(self.reply))
        self.reply.clear()

    def msg_reject(self, at: int, size: int) -> None:
        self.ctx.bound(size)
        self.ctx.reject(self.bytes_at(at, size).decode(errors="replace"))

    # Cycles

    def msg_cycles_available(self) -> int:
        return self._low(self.ctx.available)

    def msg_cycles_available128(self, to: int) -> None:
        self._save_cycles(self.ctx.available, to)

    def msg_cycles_refunded(self) -> int:
        return self._low(0 if self.answer is None else self.answer.refunded)

    def msg_cycles_refunded128(self, to: int) -> None:
        self._save_cycles(0 if self.answer is None else self.answer.refunded, to)

    def msg_cycles_accept(self, most: int) -> int:
        return self.ctx.accept(most)

    def msg_cycles_accept128(self, high: int, low: int, to: int) -> None:
        self._save_cycles(self.ctx.accept(high << 64 | low), to)

    def cycles_burn128(self, high: int, low: int, to: int) -> None:
        burnt = min(high << 64 | low, self.ctx.balance)
        self.ctx.balance -= burnt
        self._save_cycles(burnt, to)

    def canister_cycle_balance(self) -> int:
        return self._low(self.ctx.balance)

    def canister_cycle_balance128(self, to: int) -> None:
        self._save_cycles(self.ctx.balance, to)

    # Calls

    def call_new(self, who: int, size: int, name: int, length: int, *callbacks: int) -> None:
        reply, reply_env, reject, reject_env = callbacks
        self._drop()
        try:
            receiver = Principal(self.bytes_at(who, size))
            method = self.bytes_at(name, length).decode()
        except (PrincipalError, UnicodeDecodeError) as error:
            raise Trap(f"the callee is unreadable: {error}") from None
        self.call = Pending(receiver, method, (reply, reply_env), (reject, reject_env))

    def _made(self) -> Pending:
        if self.call is None:
            raise Trap("no call is being made")
        return self.call

    def _drop(self) -> None:
        """A call that was begun and not performed never was: its cycles are the canister's again."""
        if self.call is not None:
            self.ctx.balance += self.call.cycles
            self.call = None

    def call_on_cleanup(self, function: int, env: int) -> None:
        if self._made().cleanup is not None:
            raise Trap("the call has a clean-up")
        self._made().cleanup = (function, env)

    def call_data_append(self, at: int, size: int) -> None:
        arg = self._made().arg
        self.ctx.bound(len(arg) + size)
        arg += self.bytes_at(at, size)

    def call_with_best_effort_response(self, seconds: int) -> None:
        if self._made().timeout is not None:
            raise Trap("the call has a timeout")
        self._made().timeout = seconds

    def call_cycles_add(self, amount: int) -> None:
        call = self._made()
        if amount > self.ctx.balance:
            raise Trap(f"{amount} cycles cannot be sent, the canister has {self.ctx.balance}")
        self.ctx.balance -= amount
        call.cycles += amount

    def call_cycles_add128(self, high: int, low: int) -> None:
        self.call_cycles_add(high << 64 | low)

    def call_perform(self) -> int:
        call, self.call = self._made(), None
        ignored = min(call.reply[0], call.reject[0]) >= _NOBODY  # how a one-way call is made
        machine, caller = self.machine, self.caller
        self.ctx.balance += call.cycles
        self.ctx.call(
            call.receiver,
            call.method,
            bytes(call.arg),
            None if ignored else lambda ctx, answer: machine.back(call, caller, ctx, answer),
            kind=GUARANTEED if call.timeout is None else BOUNDED,
            cycles=call.cycles,
            cleanup=None if call.cleanup is None else lambda ctx: machine.clean(call, caller, ctx),
            timeout=call.timeout,
        )
        return 0

    # Stable memory

    def stable64_size(self) -> int:
        return self.machine.stable.pages

    def stable64_grow(self, pages: int) -> int:
        return self.machine.stable.grow(pages)

    def stable64_write(self, at: int, source: int, size: int) -> None:
        self.machine.stable.write(at, self.bytes_at(source, size))

    def stable64_read(self, to: int, at: int, size: int) -> None:
        self._place(to, size)
        self.save(to, self.machine.stable.read(at, size))

    def stable_size(self) -> int:
        if self.machine.stable.pages * PAGE > _NARROW + 1:
            raise Trap("the stable memory is larger than 32 bits reach")
        return self.machine.stable.pages

    def stable_grow(self, pages: int) -> int:
        before = self.stable_size()
        return self.machine.stable.grow(pages) if (before + pages) * PAGE <= _NARROW + 1 else -1

    # What surrounds it

    def canister_self_size(self) -> int:
        return len(self.ctx.me)

    def canister_self_copy(self, to: int, at: int, size: int) -> None:
        self._copy(self.ctx.me, to, at, size)

    def canister_status(self) -> int:
        return _STATUS[self.ctx.host.status]

    def canister_version(self) -> int:
        return self.ctx.host.life + 1

    def is_controller(self, at: int, size: int) -> int:
        if size > 29:
            raise Trap(f"a principal has at most 29 bytes, not {size}")
        return int(self.bytes_at(at, size) in self.ctx.host.controllers)

    def certified_data_set(self, at: int, size: int) -> None:
        if size > _CERTIFIED:
            raise Trap(f"certified data has at most {_CERTIFIED} bytes, not {size}")
        self.machine.certified = self.bytes_at(at, size)

    def data_certificate_present(self) -> int:
        return 0

    def data_certificate_size(self) -> int:
        raise Trap("there is no certificate")

    def data_certificate_copy(self, *_: int) -> None:
        raise Trap("there is no certificate")

    def time(self) -> int:
        return self.ctx.time

    def global_timer_set(self, time: int) -> int:
        before = self.ctx.timer or 0
        self.ctx.set_timer(time or None)
        return before

    def performance_counter(self, kind: int) -> int:
        if kind not in {0, 1}:
            raise Trap(f"there is no performance counter {kind}")
        return self.fuel - self.machine.store().get_fuel()

    def in_replicated_execution(self) -> int:
        return int(self.kind not in "QF")

    def debug_print(self, at: int, size: int) -> None:
        self.machine.printed(self.bytes_at(at, size).decode(errors="replace"))

    def trap(self, at: int, size: int) -> None:
        raise Trap(self.bytes_at(at, size).decode(errors="replace"))

    def cost_call(self, _method: int, _argument: int, to: int) -> None:
        self._save_cycles(0, to)  # calls cost nothing here

    def finish(self) -> None:
        """Drop a call that was not performed."""
        self._drop()


_FUNCTIONS: Final[dict[str, tuple[str, str, str]]] = {
    "msg_arg_data_size": ("", "I", "IUQFY"),
    "msg_arg_data_copy": ("III", "", "IUQFY"),
    "msg_caller_size": ("", "I", _ANY),
    "msg_caller_copy": ("III", "", _ANY),
    "msg_method_name_size": ("", "I", "F"),
    "msg_method_name_copy": ("III", "", "F"),
    "accept_message": ("", "", "F"),
    "msg_reject_code": ("", "i", "YR"),
    "msg_reject_msg_size": ("", "I", "R"),
    "msg_reject_msg_copy": ("III", "", "R"),
    "msg_deadline": ("", "j", "UQYR"),
    "msg_reply_data_append": ("II", "", "UQYR"),
    "msg_reply": ("", "", "UQYR"),
    "msg_reject": ("II", "", "UQYR"),
    "msg_cycles_available": ("", "j", "UYR"),
    "msg_cycles_available128": ("I", "", "UYR"),
    "msg_cycles_refunded": ("", "j", "YR"),
    "msg_cycles_refunded128": ("I", "", "YR"),
    "msg_cycles_accept": ("j", "j", "UYR"),
    "msg_cycles_accept128": ("jjI", "", "UYR"),
    "cycles_burn128": ("jjI", "", "IPUHYRC"),
    "canister_cycle_balance": ("", "j", _ANY),
    "canister_cycle_balance128": ("I", "", _ANY),
    "canister_liquid_cycle_balance128": ("I", "", _ANY),
    "call_new": ("IIIIIIII", "", _CALLS),
    "call_on_cleanup": ("II", "", _CALLS),
    "call_data_append": ("II", "", _CALLS),
    "call_with_best_effort_response": ("i", "", _CALLS),
    "call_cycles_add": ("j", "", _CALLS),
    "call_cycles_add128": ("jj", "", _CALLS),
    "call_perform": ("", "i", _CALLS),
    "cost_call": ("jjI", "", _ANY),
    "stable_size": ("", "i", _ANY),
    "stable_grow": ("i", "i", _ANY),
    "stable_write": ("iii", "", _ANY),
    "stable_read": ("iii", "", _ANY),
    "stable64_size": ("", "j", _ANY),
    "stable64_grow": ("j", "j", _ANY),
    "stable64_write": ("jjj", "", _ANY),
    "stable64_read": ("jjj", "", _ANY),
    "canister_self_size": ("", "I", _ANY),
    "canister_self_copy": ("III", "", _ANY),
    "canister_status": ("", "i", _ANY),
    "canister_version": ("", "j", _ANY),
    "is_controller": ("II", "i", _ANY),
    "certified_data_set": ("II", "", "IPUHYR"),
    "data_certificate_present": ("", "i", _ANY),
    "data_certificate_size": ("", "I", "Q"),
    "data_certificate_copy": ("III", "", "Q"),
    "time": ("", "j", _ANY),
    "global_timer_set": ("j", "j", "IUHYRC"),
    "performance_counter": ("i", "j", _ANY),
    "in_replicated_execution": ("", "i", _ANY),
    "debug_print": ("II", "", _ANY),
    "trap": ("II", "", _ANY),
}
"""Each function of the system: parameters, result, and where it may be called."""

_SAME: Final = {
    "canister_liquid_cycle_balance128": "canister_cycle_balance128",
    "stable_write": "stable64_write",
    "stable_read": "stable64_read",
}

RUNNING: Final = threading.local()
"""The execution of this thread, as `now`."""


@lru_cache(maxsize=64)
def linker(module: Module) -> wasmtime.Linker:
    """The functions that a module imports. Raises `ModuleError` for one that is not offered, or has another type."""
    made = wasmtime.Linker(engine())
    made.allow_shadowing = True  # a module may import one function twice
    address = "j" if module.wide else "i"
    for each in module.code.imports:
        name, kind = each.name or "", each.type
        if name not in _FUNCTIONS or not isinstance(kind, wasmtime.FuncType):
            raise ModuleError(f"the module imports ic0.{safe(name)}, which is not offered")
        takes, gives, where = _FUNCTIONS[name]
        wanted = [letters.replace("I", address) for letters in (takes, gives)]
        has = ["".join({"i32": "i", "i64": "j"}.get(str(t), "?") for t in part) for part in (kind.params, kind.results)]
        if has != wanted:
            raise ModuleError(f"ic0.{name} is imported as {has[0]} -> {has[1]}, it is {wanted[0]} -> {wanted[1]}")
        masks = tuple(_WIDE if letter == "j" else _NARROW for letter in wanted[0])
        function = getattr(Execution, _SAME.get(name, name))
        made.define_func("ic0", name, kind, partial(_called, name, function, where, masks, wanted[1]))
    return made


atexit.register(linker.cache_clear)  # before the library itself is gone


def _called(
    name: str, function: Callable[..., int | None], where: str, masks: tuple[int, ...], gives: str, *values: int
) -> int | None:
    """Call a function of the system with naturals; its result is an integer as WebAssembly has it."""
    now: Execution = RUNNING.now
    if now.kind not in where:
        raise Trap(f"ic0.{name} cannot be called here")
    found = function(now, *(value & mask for value, mask in zip(values, masks, strict=True)))
    if found is None:
        return None
    bits = 64 if gives == "j" else 32
    return found - (1 << bits) if found >> (bits - 1) == 1 else found
