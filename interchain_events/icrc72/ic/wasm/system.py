"""The functions of the system that modules import from `ic0`.

The table `_FUNCTIONS` has for each function its parameters and result, the kinds of executions in
which it may be called (it traps in others), and its implementation. In signatures, `i` has 32 bits,
`j` 64 bits, and `I` is an address with as many bits as those of the module's memory.

The kinds are the letters of the interface specification:

  G  start                    F  inspect
  I  init and post-upgrade    Y  reply callback
  P  pre-upgrade              R  reject callback
  U  update                   C  clean-up callback
  H  heartbeat and timer      Q  query

Each call of a function costs instructions, and more for each byte that it copies (see
`Execution.charge`), so that the limit of instructions also bounds the time that the host works for
a canister.
"""

# ruff: noqa: D102  # functions of the system are described by the interface specification
import atexit
import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol
from weakref import WeakKeyDictionary

import wasmtime

from interchain_events.icrc72.ic.canister import (
    BOUNDED,
    GUARANTEED,
    SYS_TRANSIENT,
    Answer,
    Context,
)
from interchain_events.icrc72.ic.errors import ModuleError, PrincipalError, Trap
from interchain_events.icrc72.ic.principal import LONGEST, Principal
from interchain_events.icrc72.ic.wasm.engine import engine
from interchain_events.icrc72.ic.wasm.module import Module
from interchain_events.icrc72.ic.wasm.scan import FunctionType
from interchain_events.icrc72.ic.wasm.stable_memory import PAGE, StableMemory
from pubsub_emulator.files.shown import safe

_ANY: Final = "GIPUHQFYRC"
"""All kinds of executions."""
_CALLS: Final = "UHYR"
"""The kinds of executions that may make calls."""
_NARROW: Final = (1 << 32) - 1
_WIDE: Final = (1 << 64) - 1
_STATUS: Final = {"running": 1, "stopping": 2, "stopped": 3}
_CERTIFIED: Final = 32
"""The most bytes of certified data."""
CALL_COST: Final = 20_000
"""The instructions that a call of a function of the system costs, by the time that it takes."""
BYTE_COST: Final = 4
"""The instructions for each byte that is copied from or to the memory."""
STABLE_BYTE_COST: Final = 4
"""The instructions for each byte of stable memory that is read or written, besides."""
_BATCH: Final = 1_000_000
"""The owed instructions that are taken from the store together, because this takes time itself."""
_CHUNK: Final = 1 << 20
"""The bytes that are copied at once between memory and stable memory."""
TRAP_BYTES: Final = 1 << 15
"""The most bytes of the text of a trap. The rest is cut off."""
LINE_BYTES: Final = 1 << 15
"""The most bytes of a printed line. The rest is cut off."""
METHOD_BYTES: Final = 20_000
"""The most bytes of the name of a method that is called."""
CALL_BYTES: Final = 1 << 10
"""The bytes that a call takes besides its argument."""
_NOBODY: Final = 1 << 31
"""The first index that functions in tables cannot have.

If a callback has this index or a larger one, the answer is ignored.
"""


class _Machine(Protocol):
    """The part of a canister that the functions of the system use."""

    stable: StableMemory
    certified: bytes
    call_bytes: int
    """The most bytes of the calls of one execution."""

    def store(self) -> wasmtime.Store: ...
    def back(self, call: "Pending", caller: Principal, ctx: Context, answer: Answer) -> None: ...
    def clean(self, call: "Pending", caller: Principal, ctx: Context) -> None: ...
    def memory_address(self) -> int: ...
    def memory_size(self) -> int: ...
    def printed(self, line: str) -> None: ...


@dataclass(slots=True)
class Pending:
    """A call that is being made. Callbacks are an index in the table and an argument."""

    receiver: Principal
    method: str
    reply: tuple[int, int]
    reject: tuple[int, int]
    cleanup: tuple[int, int] | None = None
    arg: bytearray = field(default_factory=bytearray)
    cycles: int = 0
    timeout: int | None = None
    """The timeout in seconds, which are rounds; `None` for a guaranteed call."""


@dataclass(slots=True)
class Execution:
    """One execution of a canister's code.

    The methods without docstrings are functions of the system with the same name.
    """

    machine: _Machine
    kind: str
    """The letter of its kind, as in the list at the top of this file."""
    ctx: Context
    caller: Principal
    arg: bytes
    """The argument of the message, or the data of a reply."""
    method: str
    """The name of the method, in an inspection."""
    fuel: int
    """The instructions that it may execute."""
    answer: Answer | None = None
    """The answer that a callback gets."""
    reply: bytearray = field(default_factory=bytearray)
    """The data of the reply so far."""
    call: Pending | None = None
    """The call that is being made."""
    let_in: bool = False
    """Whether an inspection has accepted the message."""
    owed: int = 0
    """The instructions of functions of the system that have not been taken from the store."""
    sent: int = 0
    """The bytes of the calls that this execution has made."""

    def charge(self, instructions: int) -> None:
        """Count instructions for work of the host. Raises `Trap` if too few are left."""
        self.owed += instructions
        if self.owed >= _BATCH:
            self.settle()

    def settle(self) -> None:
        """Take the owed instructions from the store. Raises `Trap` if too few are left."""
        store = self.machine.store()
        left = store.get_fuel() - self.owed
        store.set_fuel(max(left, 0))
        self.owed = 0
        if left < 0:
            raise Trap(out_of_instructions(self.fuel))

    def bytes_at(self, at: int, size: int) -> bytes:
        """Return bytes of the canister's memory. Raises `Trap` outside of the memory."""
        place = self._place(at, size)
        self.charge(size * BYTE_COST)
        return ctypes.string_at(place, size)

    def save(self, at: int, data: bytes) -> None:
        """Write into the canister's memory. Raises `Trap` outside of the memory."""
        place = self._place(at, len(data))
        self.charge(len(data) * BYTE_COST)
        ctypes.memmove(place, data, len(data))

    def _place(self, at: int, size: int) -> int:
        """Return the address in this process of a part of the memory. Raises `Trap` outside."""
        if at + size > self.machine.memory_size():
            raise Trap(f"{size} bytes at {at} are outside the memory")
        return self.machine.memory_address() + at

    def copy(self, data: bytes, to: int, at: int, size: int) -> None:
        """Write a part of `data` into the canister's memory.

        The part has `size` bytes and begins at the offset `at`. It is written to the address `to`.
        Raises `Trap` if the data have no such part, or outside of the memory.
        """
        if at + size > len(data):
            raise Trap(f"{size} bytes from {at} on are asked for, there are {len(data)}")
        self.save(to, data[at : at + size])

    def save_cycles(self, number: int, to: int) -> None:
        """Write an amount of cycles as 128 bits, little-endian."""
        self.save(to, number.to_bytes(16, "little"))

    def accept_message(self) -> None:
        if self.let_in:
            raise Trap("the message was accepted before")
        self.let_in = True

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
        self.ctx.reject(self.text(at, size))

    def text(self, at: int, size: int) -> str:
        """Return text of the canister's memory. Bytes that are not UTF-8 are replaced."""
        return self.bytes_at(at, size).decode(errors="replace")

    def text_up_to(self, at: int, size: int, most: int) -> str:
        """Return the first `most` bytes of a text. All of it must be inside the memory."""
        self._place(at, size)
        return self.text(at, min(size, most))

    def cycles_accept128(self, high: int, low: int, to: int) -> None:
        self.save_cycles(self.ctx.accept(high << 64 | low), to)

    def cycles_burn128(self, high: int, low: int, to: int) -> None:
        burnt = min(high << 64 | low, self.ctx.balance)
        self.ctx.balance -= burnt
        self.save_cycles(burnt, to)

    def call_new(self, callee: int, size: int, name: int, length: int, *callbacks: int) -> None:
        reply, reply_env, reject, reject_env = callbacks
        self.drop_call()
        if size > LONGEST or length > METHOD_BYTES:
            raise Trap(
                f"the callee is unreadable: a principal has at most {LONGEST} bytes and a method"
                f" {METHOD_BYTES:,}, not {size} and {length}"
            )
        try:
            receiver = Principal(self.bytes_at(callee, size))
            method = self.bytes_at(name, length).decode()
        except (PrincipalError, UnicodeDecodeError) as error:
            raise Trap(f"the callee is unreadable: {error}") from None
        self.call = Pending(receiver, method, (reply, reply_env), (reject, reject_env))

    def _current_call(self) -> Pending:
        """Return the call that is being made. Raises `Trap` if there is none."""
        if self.call is None:
            raise Trap("no call is being made")
        return self.call

    def drop_call(self) -> None:
        """Drop a call that was begun but not performed, and give its cycles back."""
        if self.call is not None:
            self.ctx.balance += self.call.cycles
            self.call = None

    def call_on_cleanup(self, function: int, env: int) -> None:
        call = self._current_call()
        if call.cleanup is not None:
            raise Trap("the call has a clean-up")
        call.cleanup = (function, env)

    def call_data_append(self, at: int, size: int) -> None:
        arg = self._current_call().arg
        self.ctx.bound(len(arg) + size)
        arg += self.bytes_at(at, size)

    def call_with_best_effort_response(self, seconds: int) -> None:
        call = self._current_call()
        if call.timeout is not None:
            raise Trap("the call has a timeout")
        call.timeout = seconds

    def call_cycles_add(self, amount: int) -> None:
        call = self._current_call()
        if amount > self.ctx.balance:
            raise Trap(f"{amount} cycles cannot be sent, the canister has {self.ctx.balance}")
        self.ctx.balance -= amount
        call.cycles += amount

    def call_perform(self) -> int:
        call = self._current_call()
        self.sent += CALL_BYTES + len(call.method) + len(call.arg)
        if self.sent > self.machine.call_bytes:
            self.drop_call()
            return SYS_TRANSIENT
        self.call = None
        # Modules make one-way calls with callbacks that do not exist.
        ignored = min(call.reply[0], call.reject[0]) >= _NOBODY
        then = None if ignored else partial(self.machine.back, call, self.caller)
        cleanup = None if call.cleanup is None else partial(self.machine.clean, call, self.caller)
        # `call_cycles_add` has taken the cycles from the balance, and `Context.call` does it again.
        self.ctx.balance += call.cycles
        self.ctx.call(
            call.receiver,
            call.method,
            bytes(call.arg),
            then,
            kind=GUARANTEED if call.timeout is None else BOUNDED,
            cycles=call.cycles,
            cleanup=cleanup,
            timeout=call.timeout,
        )
        return 0

    def stable64_write(self, at: int, source: int, size: int) -> None:
        self._place(source, size)
        self.machine.stable.check(at, size)
        self.charge(size * STABLE_BYTE_COST)
        for done in range(0, size, _CHUNK):
            part = self.bytes_at(source + done, min(_CHUNK, size - done))
            self.machine.stable.write(at + done, part)

    def stable64_read(self, to: int, at: int, size: int) -> None:
        self._place(to, size)
        self.machine.stable.check(at, size)
        self.charge(size * STABLE_BYTE_COST)
        for done in range(0, size, _CHUNK):
            self.save(to + done, self.machine.stable.read(at + done, min(_CHUNK, size - done)))

    def stable_size(self) -> int:
        if self.machine.stable.pages * PAGE > _NARROW + 1:
            raise Trap("the stable memory is larger than 32 bits reach")
        return self.machine.stable.pages

    def stable_grow(self, pages: int) -> int:
        before = self.stable_size()
        return self.machine.stable.grow(pages) if (before + pages) * PAGE <= _NARROW + 1 else -1

    def is_controller(self, at: int, size: int) -> int:
        if size > LONGEST:
            raise Trap(f"a principal has at most {LONGEST} bytes, not {size}")
        return int(self.bytes_at(at, size) in self.ctx.host.controllers)

    def certified_data_set(self, at: int, size: int) -> None:
        if size > _CERTIFIED:
            raise Trap(f"certified data has at most {_CERTIFIED} bytes, not {size}")
        self.machine.certified = self.bytes_at(at, size)

    def data_certificate(self) -> bytes:
        raise Trap("there is no certificate")

    def global_timer_set(self, time: int) -> int:
        # In this interface, 0 stands for no timer.
        before = 0 if self.ctx.timer is None else self.ctx.timer
        self.ctx.set_timer(None if time == 0 else time)
        return before

    def performance_counter(self, kind: int) -> int:
        if kind not in {0, 1}:
            raise Trap(f"there is no performance counter {kind}")
        self.settle()
        return self.fuel - self.machine.store().get_fuel()

    def debug_print(self, at: int, size: int) -> None:
        self.machine.printed(self.text_up_to(at, size, LINE_BYTES))

    def trap(self, at: int, size: int) -> None:
        raise Trap(self.text_up_to(at, size, TRAP_BYTES))


def out_of_instructions(fuel: int) -> str:
    """Return the text of the trap after the last instruction."""
    return f"IC0522: more than {fuel} instructions"


_Function = Callable[..., int | None]
_Offered = tuple[str, str, str, _Function]
"""The parameters, result, kinds and implementation of a function of the system."""


def _data(name: str, where: str, data: Callable[[Execution], bytes]) -> dict[str, _Offered]:
    """Return the two functions by which a module reads data: its size, and a copy of a part."""
    return {
        f"{name}_size": ("", "I", where, lambda now: len(data(now))),
        f"{name}_copy": ("III", "", where, lambda now, *part: now.copy(data(now), *part)),
    }


def _amount(name: str, where: str, amount: Callable[[Execution], int]) -> dict[str, _Offered]:
    """Return the two functions that give an amount of cycles, in 64 and in 128 bits.

    The first one traps if the amount does not fit.
    """

    def narrow(now: Execution) -> int:
        number = amount(now)
        if number > _WIDE:
            raise Trap(f"{number} cycles do not fit into 64 bits")
        return number

    def wide(now: Execution, to: int) -> None:
        now.save_cycles(amount(now), to)

    return {name: ("", "j", where, narrow), f"{name}128": ("I", "", where, wide)}


def _balance(now: Execution) -> int:
    return now.ctx.balance


_FUNCTIONS: Final[dict[str, _Offered]] = {
    **_data("msg_arg_data", "IUQFY", lambda now: now.arg),
    **_data("msg_caller", _ANY, lambda now: now.caller),
    **_data("msg_method_name", "F", lambda now: now.method.encode()),
    **_data(
        "msg_reject_msg",
        "R",
        lambda now: b"" if now.answer is None else now.answer.message.encode(),
    ),
    **_data("canister_self", _ANY, lambda now: now.ctx.me),
    **_data("data_certificate", "Q", Execution.data_certificate),
    **_amount("msg_cycles_available", "UYR", lambda now: now.ctx.available),
    **_amount(
        "msg_cycles_refunded", "YR", lambda now: 0 if now.answer is None else now.answer.refunded
    ),
    **_amount("canister_cycle_balance", _ANY, _balance),
    "canister_liquid_cycle_balance128": _amount("", _ANY, _balance)["128"],
    "msg_cycles_accept": ("j", "j", "UYR", lambda now, most: now.ctx.accept(most)),
    "msg_cycles_accept128": ("jjI", "", "UYR", Execution.cycles_accept128),
    "cycles_burn128": ("jjI", "", "IPUHYRC", Execution.cycles_burn128),
    "accept_message": ("", "", "F", Execution.accept_message),
    "msg_reject_code": ("", "i", "YR", lambda now: 0 if now.answer is None else now.answer.code),
    "msg_deadline": ("", "j", "UQYR", lambda now: now.ctx.deadline),
    "msg_reply_data_append": ("II", "", "UQYR", Execution.msg_reply_data_append),
    "msg_reply": ("", "", "UQYR", Execution.msg_reply),
    "msg_reject": ("II", "", "UQYR", Execution.msg_reject),
    "call_new": ("IIIIIIII", "", _CALLS, Execution.call_new),
    "call_on_cleanup": ("II", "", _CALLS, Execution.call_on_cleanup),
    "call_data_append": ("II", "", _CALLS, Execution.call_data_append),
    "call_with_best_effort_response": ("i", "", _CALLS, Execution.call_with_best_effort_response),
    "call_cycles_add": ("j", "", _CALLS, Execution.call_cycles_add),
    "call_cycles_add128": (
        "jj",
        "",
        _CALLS,
        lambda now, high, low: now.call_cycles_add(high << 64 | low),
    ),
    "call_perform": ("", "i", _CALLS, Execution.call_perform),
    # Calls are free here.
    "cost_call": ("jjI", "", _ANY, lambda now, _method, _argument, to: now.save_cycles(0, to)),
    "stable_size": ("", "i", _ANY, Execution.stable_size),
    "stable_grow": ("i", "i", _ANY, Execution.stable_grow),
    "stable_write": ("iii", "", _ANY, Execution.stable64_write),
    "stable_read": ("iii", "", _ANY, Execution.stable64_read),
    "stable64_size": ("", "j", _ANY, lambda now: now.machine.stable.pages),
    "stable64_grow": ("j", "j", _ANY, lambda now, pages: now.machine.stable.grow(pages)),
    "stable64_write": ("jjj", "", _ANY, Execution.stable64_write),
    "stable64_read": ("jjj", "", _ANY, Execution.stable64_read),
    "canister_status": ("", "i", _ANY, lambda now: _STATUS[now.ctx.host.status]),
    "canister_version": ("", "j", _ANY, lambda now: now.ctx.host.life + 1),
    "is_controller": ("II", "i", _ANY, Execution.is_controller),
    "certified_data_set": ("II", "", "IPUHYR", Execution.certified_data_set),
    "data_certificate_present": ("", "i", _ANY, lambda _now: 0),
    "time": ("", "j", _ANY, lambda now: now.ctx.time),
    "global_timer_set": ("j", "j", "IUHYRC", Execution.global_timer_set),
    "performance_counter": ("i", "j", _ANY, Execution.performance_counter),
    "in_replicated_execution": ("", "i", _ANY, lambda now: int(now.kind not in "QF")),
    "debug_print": ("II", "", _ANY, Execution.debug_print),
    "trap": ("II", "", _ANY, Execution.trap),
}
"""The functions of the system by name."""

SIGNATURES: Final = {name: (takes, gives) for name, (takes, gives, _, _) in _FUNCTIONS.items()}
"""The parameters and results of the functions of the system by name, as letters."""

RUNNING: Final = threading.local()
"""The execution of this thread, as its attribute `now`.

A linker belongs to a module and not to an execution, so its functions find the execution here.
"""


_TYPES: Final = {"i": "i32", "j": "i64"}
"""The types of values by the letters of the table above."""
_LINKERS: Final[WeakKeyDictionary[Module, wasmtime.Linker]] = WeakKeyDictionary()
"""The linkers of the modules that are in use."""


def linker(module: Module) -> wasmtime.Linker:
    """Return a linker with the functions that a module imports.

    Raises `ModuleError` if a function does not exist or is imported with another signature.
    """
    if module not in _LINKERS:
        _LINKERS[module] = _linked(module)
    return _LINKERS[module]


def _linked(module: Module) -> wasmtime.Linker:
    """Make a linker. Raises `ModuleError`."""
    new_linker = wasmtime.Linker(engine())
    # A module may import a function twice.
    new_linker.allow_shadowing = True
    address = "j" if module.wide else "i"
    for name, imported in module.imports:
        if name not in _FUNCTIONS:
            raise ModuleError(f"the module imports ic0.{safe(name)[:80]}, which is not offered")
        takes, gives, where, function = _FUNCTIONS[name]
        offered = FunctionType(
            tuple(_TYPES[letter] for letter in takes.replace("I", address)),
            tuple(_TYPES[letter] for letter in gives.replace("I", address)),
        )
        if imported != offered:
            raise ModuleError(f"ic0.{name} is imported as {str(imported)[:80]}, it is {offered}")
        masks = tuple(_WIDE if type_ == "i64" else _NARROW for type_ in offered.takes)
        kind = wasmtime.FuncType(
            [_value_type(type_) for type_ in offered.takes],
            [_value_type(type_) for type_ in offered.gives],
        )
        wide = offered.gives == ("i64",)
        called = partial(_called, name, function, where, masks, wide=wide)
        new_linker.define_func("ic0", name, kind, called)
    return new_linker


def _value_type(name: str) -> wasmtime.ValType:
    return wasmtime.ValType.i64() if name == "i64" else wasmtime.ValType.i32()


# wasmtime prints complaints if objects are freed after it has shut down.
atexit.register(_LINKERS.clear)


def _called(
    name: str, function: _Function, where: str, masks: tuple[int, ...], *values: int, wide: bool
) -> int | None:
    """Call a function of the system for a module.

    WebAssembly's integers are signed for Python. Arguments become natural numbers of their width,
    and the result becomes signed again: of 64 bits if it is `wide`, otherwise of 32. Raises `Trap`
    in a kind of execution that may not call the function.
    """
    now: Execution = RUNNING.now
    now.charge(CALL_COST)
    if now.kind not in where:
        raise Trap(f"ic0.{name} cannot be called here")
    naturals = (value & mask for value, mask in zip(values, masks, strict=True))
    result = function(now, *naturals)
    if result is None:
        return None
    bits = 64 if wide else 32
    is_negative = result >> (bits - 1) == 1
    return result - (1 << bits) if is_negative else result
