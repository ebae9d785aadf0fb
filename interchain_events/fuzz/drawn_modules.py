"""Modules of canisters that are derived from bytes (`pubsub fuzz --target canister-run`).

Any bytes give a module: each choice uses the next byte, or 0 after the last one. The methods try to
harm the host: they grow, fill and copy memories and tables, drop segments, set globals, call
themselves and functions of the system with unusual numbers, loop, recurse and trap. Most modules
are valid. The others have types or sizes that must be refused.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from interchain_events.icrc72.ic.wasm.system import SIGNATURES

T = TypeVar("T")

_ADDRESSES: Final = (0, 1, 8, 100, 4096, 65_528, 65_535, 65_536, 131_072, 2**31 - 1, 2**32 - 1)
_SIZES: Final = (0, 1, 4, 10, 64, 4096, 65_536, 1_048_576, 2_097_153, 2**31, 2**32 - 1)
_INDICES: Final = (0, 1, 2, 3, 7, 50, 2**31, 2**32 - 1)
_WIDE: Final = (0, 1, 3, 10, 10**9, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
_PAGES: Final = (1, 1, 1, 2, 3, 0, 16, 100, 1025, 65_536)
_ENTRIES: Final = (3, 1, 2, 10, 40, 100, 5000, 100_000)
_METHODS: Final = ("update a", "update b", "query q")
_HOOKS: Final = (
    "init",
    "heartbeat",
    "global_timer",
    "inspect_message",
    "pre_upgrade",
    "post_upgrade",
)
_QUIET: Final = {"init", "pre_upgrade", "post_upgrade"}
"""The hooks that must not trap often, because the canister does little after a trap in them."""
_CONSTANTS: Final = {
    "i32": "(i32.const 7)",
    "i64": "(i64.const -9)",
    "f32": "(f32.const nan:0x200001)",
    "f64": "(f64.const -0)",
    "v128": "(v128.const i64x2 1 -2)",
    "funcref": "(ref.func $h0)",
    "externref": "(ref.null extern)",
    "anyref": "(ref.null any)",
    "(ref null $t0)": "(ref.null $t0)",
}
_USUAL: Final = ("i32", "i64", "f32", "f64", "v128")
_HELPERS: Final = ("", "(param i32)", "(param i64)", "(param f32)", "(result v128)", "(result i32)")
"""The types of functions that methods call, directly or as callbacks."""
_PERSISTENT: Final = '(@custom "icp:private enhanced-orthogonal-persistence" "")'


class Choices:
    """Choices that are derived from bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1. `bound` is at most 256."""
        byte = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return byte % bound

    def one_in(self, count: int) -> bool:
        """Return true in one of `count` cases, but never after the last byte."""
        return self.below(count) == count - 1

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]


class DrawnModule:
    """A module in the text format."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._has_memory = not choices.one_in(12)
        self._address = "i64" if self._has_memory and choices.one_in(5) else "i32"
        self._globals = [self._type() for _ in range(choices.below(4))]
        self._tables = choices.below(4)
        self._imports = {
            choices.choice(tuple(SIGNATURES)): None for _ in range(2 + choices.below(10))
        }
        # A module that never answers and never calls itself would test little.
        self._imports |= dict.fromkeys(
            ("msg_reply", "call_new", "call_perform", "canister_self_copy", "msg_reply_data_append")
        )
        self._helpers = [choices.choice(_HELPERS) for _ in range(3)]

    def text(self) -> str:
        """Return the module in the text format."""
        choices = self._choices
        parts = ["(type $t0 (func))", *self._imported()]
        if self._has_memory:
            wide = "i64 " if self._address == "i64" else ""
            parts.append(f"(memory $m {wide}{self._sizes(_PAGES)})")
            parts.append('(data $d0 "segment") (data $d1 "0123456789abcdef")')
            if choices.one_in(3):
                parts.append(f'(data {self._constant(_ADDRESSES)} "active")')
        for number in range(self._tables):
            kind = "externref" if choices.one_in(40) else "funcref"
            parts.append(f"(table $x{number} {self._sizes(_ENTRIES)} {kind})")
        parts.append("(elem $e0 func $h0 $h1 $h2)")
        if self._tables and choices.one_in(2):
            at = 9 if choices.one_in(20) else 0
            parts.append(f"(elem (table $x0) (i32.const {at}) func $h1)")
        parts += [
            f"(global $g{number} (mut {kind}) {_CONSTANTS[kind]})"
            for number, kind in enumerate(self._globals)
        ]
        parts += [self._helper(number, kind) for number, kind in enumerate(self._helpers)]
        parts += [
            f'(func (export "canister_{name}") {self._body(quiet=name in _QUIET)})'
            for name in (*_METHODS, *(hook for hook in _HOOKS if choices.one_in(2)))
        ]
        if choices.one_in(4):
            parts.append(f"(func $start {self._body(quiet=True)}) (start $start)")
        if choices.one_in(3):
            parts.append(_PERSISTENT)
        return f"(module {' '.join(parts)})"

    def _sizes(self, options: Sequence[int]) -> str:
        """Return the initial size of a memory or table, and sometimes also the greatest one.

        In one of twenty cases they may be invalid: too large, or the greatest one too small.
        """
        if self._choices.one_in(20):
            first = self._choices.choice(options)
            last = self._choices.choice(options)
        else:
            first = self._choices.choice(options[: len(options) // 2])
            last = first + self._choices.below(4)
        return f"{first} {last}" if self._choices.one_in(5) else f"{first}"

    def _type(self) -> str:
        """Return a global's type. One of twenty may be a type that cannot be saved."""
        is_unusual = self._choices.one_in(20)
        return self._choices.choice(tuple(_CONSTANTS) if is_unusual else _USUAL)

    def _imported(self) -> list[str]:
        """Return the imports of the functions of the system."""
        parts = []
        for name in self._imports:
            takes, gives = SIGNATURES[name]
            params = " ".join(self._type_of(letter) for letter in takes)
            results = " ".join(self._type_of(letter) for letter in gives)
            signature = f"(param {params}) (result {results})"
            parts.append(f'(import "ic0" "{name}" (func ${name} {signature}))')
        return parts

    def _type_of(self, letter: str) -> str:
        """Return the type for a letter in `SIGNATURES`. `I` is the type of addresses."""
        return {"i": "i32", "j": "i64", "I": self._address}[letter]

    def _helper(self, number: int, kind: str) -> str:
        """Return the helper function `$h<number>`. `kind` is its signature, one of `_HELPERS`."""
        end = {"(result v128)": _CONSTANTS["v128"], "(result i32)": "(i32.const 1)"}.get(kind, "")
        return f"(func $h{number} {kind} {self._body()} {end})"

    def _body(self, *, quiet: bool = False) -> str:
        count = 1 + self._choices.below(5)
        return " ".join(self._statement(quiet=quiet) for _ in range(count))

    def _statement(self, *, quiet: bool) -> str:
        """Return one statement that leaves the stack as it was.

        If `quiet` is true, it does not call functions, so that it seldom traps.
        """
        makers: list[Callable[[], str]] = [self._nothing]
        if not quiet:
            makers += [self._system, self._system, self._other]
        # A function that is listed twice is chosen twice as often.
        if self._has_memory:
            makers += [self._on_memory, self._on_memory]
        if self._tables:
            makers += [self._on_table, self._on_table]
        if self._globals:
            makers.append(self._on_global)
        if self._has_memory and not quiet:
            makers += [self._call, self._reply]
        return self._choices.choice(makers)()

    def _nothing(self) -> str:
        return "nop"

    def _number(self, letter: str) -> str:
        """Return a constant for a parameter of a function of the system."""
        return self._constant(_WIDE if letter == "j" else _SIZES, self._type_of(letter))

    def _constant(self, options: Sequence[int], kind: str = "") -> str:
        """Return a constant of one of these values, of the type of addresses by default.

        Nine of ten values are from the first half of the options.
        """
        is_small = not self._choices.one_in(10)
        number = self._choices.choice(options[: len(options) // 2] if is_small else options)
        return f"({kind or self._address}.const {number})"

    def _system(self) -> str:
        """Return a call of an imported function of the system, with constants as arguments."""
        name = self._choices.choice(tuple(self._imports))
        takes, gives = SIGNATURES[name]
        call = f"(call ${name} {' '.join(map(self._number, takes))})"
        return f"(drop {call})" if gives else call

    def _reply(self) -> str:
        """Return a reply to the caller, with data from memory unless they are too many."""
        size = self._choices.choice(_SIZES)
        kind = self._address
        append = f"(call $msg_reply_data_append ({kind}.const 0) ({kind}.const {size}))"
        return f"{append if size < 1 << 20 else ''} (call $msg_reply)"

    def _call(self) -> str:
        """Return a call of a method of the canister itself, with callbacks from the table."""
        kind = self._address
        constant = partial(f"({kind}.const {{}})".format)
        callbacks = [constant(self._choices.choice(_INDICES)) for _ in range(4)]
        name = constant(50)
        # The canister's id has ten bytes and is copied to 200. A name of one byte is stored at 50.
        return (
            f"(call $canister_self_copy {constant(200)} {constant(0)} {constant(10)})"
            f" ({kind}.store8 {name} ({kind}.const {97 + self._choices.below(3)}))"
            f" (call $call_new {constant(200)} {constant(10)} {name} {constant(1)}"
            f" {' '.join(callbacks)})"
            " (drop (call $call_perform))"
        )

    def _on_memory(self) -> str:
        """Return one instruction on the memory. Addresses and sizes may be out of its bounds."""
        kind = self._address
        at = self._constant(_ADDRESSES)
        to = self._constant(_ADDRESSES)
        size = self._constant(_SIZES)
        short = f"(i32.const {self._choices.below(20)})"
        segment = f"$d{self._choices.below(2)}"
        return self._choices.choice(
            (
                f"(drop (memory.grow ({kind}.const {self._choices.choice(_PAGES)})))",
                f"({kind}.store {at} {size})",
                f"(v128.store {at} {_CONSTANTS['v128']})",
                f"(drop ({kind}.load {at}))",
                f"(memory.fill {at} (i32.const 7) {size})",
                f"(memory.copy {at} {to} {size})",
                f"(memory.init {segment} {at} (i32.const 0) {short})",
                f"(data.drop {segment})",
            )
        )

    def _on_table(self) -> str:
        """Return one instruction on a table. Indices may be out of its bounds."""
        table = f"$x{self._choices.below(self._tables)}"
        at = self._constant(_INDICES, "i32")
        count = self._constant(_ENTRIES, "i32")
        function = self._choices.choice(("(ref.null func)", "(ref.func $h1)", "(ref.func $h2)"))
        return self._choices.choice(
            (
                f"(table.set {table} {at} {function})",
                f"(drop (table.grow {table} {function} {count}))",
                f"(table.fill {table} {at} {function} {count})",
                f"(table.copy {table} $x0 {at} (i32.const 0) {count})",
                f"(table.init {table} $e0 {at} (i32.const 0) (i32.const 2))",
                "(elem.drop $e0)",
                f"(call_indirect {table} {at})",
                f"(drop (table.get {table} {at}))",
            )
        )

    def _on_global(self) -> str:
        """Return a change of a global: an addition to it, or a constant."""
        number = self._choices.below(len(self._globals))
        kind = self._globals[number]
        if self._choices.one_in(2) and kind in {"i32", "i64"}:
            value = f"({kind}.add (global.get $g{number}) {_CONSTANTS[kind]})"
        else:
            value = _CONSTANTS[kind]
        return f"(global.set $g{number} {value})"

    def _other(self) -> str:
        """Return a call of a helper function, a trap, an endless loop, or `nop`."""
        number = self._choices.below(3)
        kind = self._helpers[number]
        arguments = {
            "(param i32)": "(i32.const 3)",
            "(param i64)": "(i64.const 3)",
            "(param f32)": "(f32.const 3)",
        }.get(kind, "")
        call = f"(call $h{number} {arguments})"
        call = f"(drop {call})" if "result" in kind else call
        trap = "(if (i32.const 1) (then unreachable))"
        loop = "(loop $l (br $l))"
        return self._choices.choice((call, call, call, trap, "nop", loop))


def drawn_module(choices: Choices) -> str:
    """Return a module in the text format."""
    return DrawnModule(choices).text()
