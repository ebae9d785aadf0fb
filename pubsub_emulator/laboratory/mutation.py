"""Mutates untrusted files. A reader must read each file or refuse it with an error of its own.

    corpus ──pick──► mutate ──► target ──► read, refused, or a surprise
       ▲                                     │
       └──────────── what is new ◄───────────┘

An input joins the corpus if its outcome or a line that it reaches is new. The corpus can be stored
in a folder. An exception that is not a refusal is a surprise. The same seed, corpus and count give
the same inputs.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, Final, TypeAlias

from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256

TRACED: Final = 24
"""One of this many inputs is traced by line. Tracing takes about ten times as long."""

MOST_KEPT: Final = 4000
"""The maximum number of inputs in a corpus."""

MOST_BYTES: Final = 1 << 20
"""The maximum size of an input in bytes."""

# Values at which encodings change their length or limits are reached.
_LENGTHS: Final = (0, 1, -1, 2, 63, 64, 255, 256, 16383, 16384, 65535)
_NUMBERS: Final = (*_LENGTHS, 2**30, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 2**70)
_TEXTS: Final = ("", "0x", "0x0", "0xzz", "\x00", "../../x", "é")
_NESTED: Final[tuple[object, ...]] = ([], {}, [[]], {"": None}, [None])
_VALUES: Final[tuple[object, ...]] = (
    *_NUMBERS,
    0.5,
    -0.0,
    1e308,
    None,
    True,
    False,
    *_TEXTS,
    *_NESTED,
)
_SPECIFIC: Final = re.compile(r"0x[0-9a-f]*|[0-9a-f]{8,}|[0-9]+|'[^']*'|\"[^\"]*\"|b'.*'")
"""The parts of an error message that differ between similar errors."""


@dataclass(frozen=True, slots=True)
class Target:
    """A reader of files that is tested."""

    name: str
    about: str
    """A description for people."""
    seeds: Callable[[], Iterable[bytes]]
    """Returns inputs that the reader accepts."""
    read: Callable[[bytes], str]
    """Reads an input and returns a short description of the result."""
    text: bool = False
    """Whether inputs are JSON, so that values in them can be mutated."""
    modules: tuple[str, ...] = ()
    """The modules whose lines are traced."""
    shrink: Callable[[bytes], bytes] | None = None
    """Returns a smaller input with the same surprise."""


Reader = Callable[[bytes], str]
DECLARED: Final[list[Target]] = []
"""The targets of all modules that have been imported."""


def target(
    name: str,
    about: str,
    seeds: Callable[[], Iterable[bytes]],
    *rooms: str,
    text: bool = False,
    shrink: Callable[[bytes], bytes] | None = None,
) -> Callable[[Reader], Reader]:
    """Declare a function as the reader of a target.

    `rooms` are the modules whose lines are traced, relative to the function's top-level package.
    The other arguments are those of `Target`.
    """

    def keep(read: Reader) -> Reader:
        package = read.__module__.partition(".")[0]
        modules = tuple(f"{package}.{room}" for room in rooms)
        DECLARED.append(
            Target(name, about, seeds, read=read, text=text, modules=modules, shrink=shrink)
        )
        return read

    return keep


@dataclass(frozen=True, slots=True)
class Surprise:
    """An input that a reader neither accepted nor refused."""

    target: str
    data: bytes
    """The input, shrunk if the target can do that."""
    what: str
    """The exception."""


@dataclass(slots=True)
class Mutated:
    """The result of a campaign on one target."""

    target: str
    tried: int = 0
    """The number of mutated inputs."""
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Inputs by outcome."""
    lines: int = 0
    """The number of distinct lines that were reached."""
    corpus: int = 0
    """The number of inputs in the corpus."""
    surprises: list[Surprise] = field(default_factory=list)


Progress = Callable[[int], None]


def mutate_target(  # noqa: PLR0917  # as the command line has them
    target: Target,
    cases: int,
    seed: str = "0",
    minutes: float | None = None,
    kept: Path | None = None,
    on_progress: Progress | None = None,
) -> Mutated:
    """Try `cases` mutations on a target, or fewer if `minutes` have passed before.

    The corpus is read from and written to the folder `kept`.
    """
    run = _Run(target, Draws(seed.encode(), f"mutate/{target.name}"), kept)
    run.begin()
    started = monotonic()
    while run.result.tried < cases and len(run.result.surprises) < _MOST_SURPRISES:
        if minutes is not None and monotonic() - started > 60 * minutes:
            break
        run.one()
        if on_progress is not None and run.result.tried % 64 == 0:
            on_progress(run.result.tried)
    run.result.seconds = monotonic() - started
    return run.result


_MOST_SURPRISES: Final = 20
"""The number of surprises after which a campaign ends."""


class _Run:
    """A campaign on one target."""

    def __init__(self, target: Target, draws: Draws, kept: Path | None) -> None:
        self.target = target
        self.draws = draws
        self.kept = kept
        """The folder in which the corpus is stored, if any."""
        self.result = Mutated(target.name)
        self.corpus: list[bytes] = []
        self.lines: dict[tuple[str, int], None] = {}
        """The lines that were reached, by file and number. The dictionary is an ordered set."""

    def begin(self) -> None:
        """Read the seeds and the stored corpus. The target must accept its seeds."""
        for data in self.target.seeds():
            self._try(data, keep=True)
        if self.kept is not None and self.kept.is_dir():
            for path in sorted(self.kept.iterdir())[:MOST_KEPT]:
                self._try(path.read_bytes(), keep=True)

    def one(self) -> None:
        """Draw an input of the corpus, mutate it once to four times, and try the result."""
        draws = self.draws
        data = draws.choice(self.corpus)
        for _ in range(draws.choice((1, 1, 1, 2, 4))):
            data = self._mutate(data)
        self.result.tried += 1
        self._try(data[:MOST_BYTES], keep=False)

    def _try(self, data: bytes, *, keep: bool) -> None:
        """Give an input to the target and record the outcome.

        With `keep`, the input joins the corpus in any case, and does not count as tried.
        """
        traced = keep or self.draws.one_in(TRACED)
        reached: dict[tuple[str, int], None] = {}
        try:
            with Lines(self.target.modules, reached) if traced else NO_LINES:
                outcome = f"read: {self.target.read(data)}"
        except PubsubError as refusal:
            outcome = f"{type(refusal).__name__}: {_SPECIFIC.sub('#', str(refusal))[:80]}"
        except Exception as failure:  # noqa: BLE001  # any exception except a refusal is a surprise
            outcome = f"!{type(failure).__name__}: {failure}"[:200]
            if all(known.what != outcome for known in self.result.surprises):
                shrunk = data if self.target.shrink is None else self.target.shrink(data)
                self.result.surprises.append(Surprise(self.target.name, shrunk, outcome))
        is_new = outcome not in self.result.outcomes or any(
            line not in self.lines for line in reached
        )
        self.lines.update(reached)
        self.result.lines = len(self.lines)
        # Seeds and kept inputs count 0, so that their outcomes are known but not counted as tried.
        self.result.outcomes[outcome] += 0 if keep else 1
        if (keep or is_new) and len(self.corpus) < MOST_KEPT:
            self.corpus.append(data)
            self.result.corpus = len(self.corpus)
            if is_new and not keep and self.kept is not None:
                self.kept.mkdir(parents=True, exist_ok=True)
                (self.kept / blake2_256(data).hex()[:24]).write_bytes(data)

    def _mutate(self, data: bytes) -> bytes:
        """Return a mutated input. Most of the time, JSON stays JSON."""
        draws = self.draws
        if self.target.text and draws.below(3):
            try:
                document = json.loads(data)
            except (ValueError, RecursionError):
                document = None
            if isinstance(document, dict | list):
                return json.dumps(_changed(document, draws)).encode()
        return mutate_bytes(data, self.corpus, draws)


def mutate_bytes(data: bytes, corpus: Sequence[bytes], draws: Draws) -> bytes:
    """Return the input with some bytes changed.

    The change flips a bit, sets, inserts, cuts, repeats or moves bytes, or inserts a piece of
    another input.
    """
    # Some inputs do not allow the drawn change. They are cut off at `offset` instead.
    offset = draws.below(len(data) + 1)
    length = 1 + draws.below(draws.choice((1, 4, 32, 512)))
    rest = data[offset:]
    match draws.below(9):
        case 0 if rest:
            return data[:offset] + bytes((rest[0] ^ (1 << draws.below(8)),)) + rest[1:]
        case 1 if rest:
            return (
                data[:offset]
                + draws.choice((b"\x00", b"\xff", b"\x7f", b"\x80", b"0", b"9", b"[", b'"'))
                + rest[1:]
            )
        case 2:
            return data[:offset] + draws.take(length) + rest
        case 3:
            return data[:offset] + rest[length:]
        case 4:
            return data[:offset] + rest[:length] * draws.choice((2, 3, 64)) + rest[length:]
        case 5:
            target_offset = draws.below(len(data) + 1)
            piece = rest[:length]
            remainder = data[:offset] + rest[length:]
            return remainder[:target_offset] + piece + remainder[target_offset:]
        case 6:
            other = draws.choice(corpus)
            piece_start = draws.below(len(other) + 1)
            return data[:offset] + other[piece_start : piece_start + length] + rest[length:]
        case 7:
            number = draws.choice(_NUMBERS)
            size = draws.choice((1, 2, 4, 8))
            return data[:offset] + (number % (1 << 8 * size)).to_bytes(size, "little") + rest[size:]
        case _:
            return data[:offset]


def _changed(document: object, draws: Draws) -> object:
    """Return the document with one value changed.

    The value is replaced or changed, or loses, repeats or renames one of its items.
    """
    places = list(_places(document, ()))
    place = draws.choice(places)
    value = _at(document, place)
    match draws.below(7):
        case 0 | 1:
            new: object = draws.choice(_VALUES)
        case 2 if isinstance(value, str) and value:
            index = draws.below(len(value))
            new = (
                value[:index]
                + draws.choice(("", "0", "f", "zz", value[index:] * 2))
                + value[index + 1 :]
            )
        case 3 if isinstance(value, int):
            new = value + draws.choice((1, -1, 2**32, -(2**32)))
        case 4 if isinstance(value, list) and value:
            index = draws.below(len(value))
            new = [
                *value[:index],
                *([value[index]] * draws.choice((0, 2, 50))),
                *value[index + 1 :],
            ]
        case 5 if isinstance(value, dict) and value:
            removed_name = draws.choice(list(value))
            new = {name: inner for name, inner in value.items() if name != removed_name}
            if draws.one_in(2):
                new[draws.choice(("", "format", removed_name + "x", "é"))] = value[removed_name]
        case _:
            new = _at(document, draws.choice(places))
    return _with(document, place, new)


def _places(value: object, place: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    """Yield the places of all values in a document, up to a depth of 12."""
    yield place
    if len(place) < 12:
        for part, inner in _inner_values(value):
            yield from _places(inner, (*place, part))


def _inner_values(value: object) -> Iterator[tuple[object, object]]:
    """Yield the values of an object or a list, each with its key or index."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _at(document: Any, place: tuple[Any, ...]) -> Any:
    """Return the value at a place."""
    for part in place:
        document = document[part]
    return document


def _with(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Return the document with another value at a place."""
    if not place:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[place[0]] = _with(document[place[0]], place[1:], value)
    return copy


NO_LINES: Final = nullcontext()
"""Use this instead of `Lines` if lines are not to be recorded."""


_Trace: TypeAlias = "Callable[[FrameType, str, object], _Trace | None]"


class Lines:
    """Records the executed lines of some modules by file and line number."""

    def __init__(self, modules: tuple[str, ...], into: dict[tuple[str, int], None]) -> None:
        """Record lines into the keys of `into`, an ordered set, inside the `with` block."""
        self.modules = modules
        self.into = into

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        sys.settrace(self._enter)

    def __exit__(self, *_error: object) -> None:
        sys.settrace(self.before)

    def _enter(self, frame: FrameType, _event: str, _argument: object) -> "_Trace | None":
        """Trace the lines of a called function if it belongs to one of the modules."""
        module = str(frame.f_globals.get("__name__", ""))
        return self._line if module.startswith(self.modules) else None

    def _line(self, frame: FrameType, event: str, _argument: object) -> "_Trace | None":
        if event == "line":
            self.into[frame.f_code.co_filename, frame.f_lineno] = None
        return self._line
