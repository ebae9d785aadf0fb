"""Plant faults into the example canisters and test them with the conformance kit.

    PYTHONPATH=tests python -m support.icrc72.canister_mutants broadcaster --modules MODULES \\
        --first 20

A mutant differs from an example in one place: a comparison, a truth value, a number, a key, or a
statement that is missing. The generator knows nothing of the kit and its rules. MODULES is the
folder of npm's modules that `examples/canisters/build.py` makes. For each mutant the command prints
the rules that it breaks beside those that the example lacks, `survived`, or that it does not
compile. A survivor is either no fault that others can see, or one that the kit should find.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from interchain_events.icrc72 import CanisterNetwork, WasmCanister
from interchain_events.icrc72.conformance.publishers import try_publisher
from interchain_events.icrc72.conformance.servers import try_broadcaster, try_orchestrator
from interchain_events.icrc72.conformance.subscribers import try_subscriber
from interchain_events.icrc72.conformance.trial import Candidate, Trial
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.services import Codec

EXAMPLES = Path(__file__).parents[3] / "examples" / "canisters"
ROLES = ("publisher", "subscriber", "broadcaster", "orchestrator")
SHARED = "Icrc72.mo"
"""What all examples in Motoko have in common."""
RUST = "lib.rs"

_NAT = Codec(parse_types("(nat)"))
_IDS = Codec(parse_types("(vec nat)"))
_WHO = Codec(parse_types("(principal)"))

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SWAPS = {
    "<=": "<",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    " < ": " <= ",
    " > ": " >= ",
    " and ": " or ",
    " or ": " and ",
    " && ": " || ",
    " || ": " && ",
    "not ": "",
    "true": "false",
    "false": "true",
    " + ": " - ",
    " += ": " -= ",
    "pushBack": "pushFront",
    "popFront": "popBack",
    "?#Ok": "?#Err",
    "containsKey": "isEmpty",
}
"""What is put in the place of a word or sign in code."""
_NUMBER = re.compile(r"(?<![\w.])(\d[\d_]*)(?![\w.])")
_IF = re.compile(r"\bif \(((?:[^()]|\([^()]*\))*)\)")
_GIVEN = re.compile(r"(?<![\w(])\?[a-z]\w*\b(?!\))")
"""An optional value that is given. In parentheses it is a pattern."""
_STATEMENT = re.compile(
    r"^\s+(?:ignore .*|[\w.]+\([^{}]*\)|[\w.\[\]]+ (?::=|\+=|=) [^{}]*);\s*(?://.*)?$"
)
"""A line that is one statement: a call or an assignment, without a block."""


class Mutant(NamedTuple):
    """A source with one fault."""

    file: str
    line: int
    """The number of the line, from 1."""
    about: str
    source: str


def mutants(file: str, source: str) -> Iterator[Mutant]:
    """Yield a source with one fault each, in the order of its lines."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        seen = {line}
        for about, changed in _changes(line):
            if changed in seen:
                continue
            seen.add(changed)
            text = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
            yield Mutant(file, number + 1, about, text)


def _changes(line: str) -> Iterator[tuple[str, str]]:
    """Yield the changes of one line, with a word about each."""
    if line.lstrip().startswith(("//", "import ", "use ", "mod ", "#!")):
        return
    code = line.partition("//")[0]
    strings = [match.span() for match in _STRING.finditer(code)]

    def inside(place: int) -> bool:
        return any(low <= place < high for low, high in strings)

    for sign, other in _SWAPS.items():
        place = code.find(sign)
        while place >= 0:
            if not inside(place):
                yield f"{sign.strip()} to {other.strip()}", _put(line, place, sign, other)
            place = code.find(sign, place + len(sign))
    for match in _IF.finditer(code):
        if not inside(match.start()):
            turned = f"if (not ({match[1]}))"
            yield f"if not {match[1]}", _put(line, match.start(), match[0], turned)
    for match in _GIVEN.finditer(code):
        if not inside(match.start()):
            yield f"{match[0]} to null", _put(line, match.start(), match[0], "null")
    for match in _NUMBER.finditer(code):
        if not inside(match.start()):
            more = str(int(match[1].replace("_", "")) + 1)
            yield f"{match[1]} to {more}", _put(line, match.start(), match[1], more)
    for low, high in strings:
        if line[low:high].startswith(('"icrc', '"org.')):
            yield f"{line[low:high]} with an x", f"{line[: high - 1]}x{line[high - 1 :]}"
    if _STATEMENT.match(line):
        yield "the statement is missing", ""


def _put(line: str, place: int, old: str, new: str) -> str:
    return line[:place] + new + line[place + len(old) :]


def mutants_of(role: str, *, rust: bool = False) -> list[Mutant]:
    """Return the mutants of a role's example: of its own source, then of the shared one."""
    if rust:
        file = EXAMPLES / "rust" / "src" / RUST
        return list(mutants(RUST, file.read_text(encoding="utf-8")))
    found: list[Mutant] = []
    for name in (f"{role.capitalize()}.mo", SHARED):
        source = (EXAMPLES / "motoko" / name).read_text(encoding="utf-8")
        found += mutants(name, source)
    return found


def compiled(role: str, mutant: Mutant, modules: Path) -> bytes | None:
    """Compile a mutant in Motoko, or return `None` if the compiler refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for each in (EXAMPLES / "motoko").glob("*.mo"):
            (here / each.name).write_bytes(each.read_bytes())
        (here / mutant.file).write_text(mutant.source, encoding="utf-8")
        made = here / "made.wasm"
        words = ["node", EXAMPLES / "build.mjs", modules, here / f"{role.capitalize()}.mo", made]
        flags = ("classicOP", "copying", "force")
        done = subprocess.run(
            [*map(str, words), *flags], capture_output=True, check=False, timeout=600
        )
        return made.read_bytes() if done.returncode == 0 else None


def candidate(role: str, wasm: bytes) -> Candidate:
    """Return a canister of a module in a role, with the methods of the role's example."""

    def publish(network: CanisterNetwork, who: Principal, number: int) -> None:
        network.submit(ANONYMOUS, who, "publish", _NAT.encode(number))

    def handled(network: CanisterNetwork, who: Principal) -> list[int]:
        answer = network.query(ANONYMOUS, who, "ids", b"DIDL\0\0")
        return list(_IDS.decode(answer.data)[0]) if answer.ok else []  # type: ignore[call-overload]  # a tuple of numbers

    return Candidate(
        lambda other: WasmCanister(wasm, _WHO.encode(other)),
        publish=publish if role == "publisher" else None,
        handled=handled if role == "subscriber" else None,
    )


TRIALS: dict[str, Callable[[Candidate], Trial]] = {
    "publisher": try_publisher,
    "subscriber": try_subscriber,
    "broadcaster": try_broadcaster,
    "orchestrator": try_orchestrator,
}


def broken(role: str, wasm: bytes) -> list[str]:
    """Return the rules that a module breaks, of every level. One that cannot start is `dead`."""
    try:
        trial = TRIALS[role](candidate(role, wasm))
    except (IcError, Icrc72Error) as error:
        return [f"dead: {error}"]
    return [each.rule for each in trial.book.verdicts if not each.holds]


def main() -> int:
    """Try some mutants of a role. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--modules", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--first", type=int, default=10, help="how many mutants to try")
    parser.add_argument("--step", type=int, default=1, help="try every so many")
    options = parser.parse_args()
    every = mutants_of(options.role)
    chosen = every[:: options.step][: options.first]
    file = every[0].file
    source = (EXAMPLES / "motoko" / file).read_text(encoding="utf-8")
    honest = compiled(options.role, Mutant(file, 0, "honest", source), options.modules)
    if honest is None:
        parser.error(f"{file} does not compile")
    # The examples lack some rules that are only recommended.
    lacking = broken(options.role, honest)
    killed = 0
    for each in chosen:
        wasm = compiled(options.role, each, options.modules)
        found = [] if wasm is None else broken(options.role, wasm)
        more = [rule for rule in found if rule not in lacking]
        said = ", ".join(more) or "survived"
        if wasm is None:
            said = "does not compile"
        killed += bool(more)
        sys.stdout.write(f"{each.file}:{each.line}: {each.about}: {said}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{killed} of {len(chosen)} were found\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
