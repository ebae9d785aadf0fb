"""The whole bench: `python -m bench`, from the project's folder.

python -m bench [--only W2 plan …] [--quick] [--json FILE]
python -m bench --check [--tolerance 0.25]     compare with the kept tables; the exit code is 1 if a
                                               line grew
python -m bench --keep                         make this run the kept tables

`--check` counts the bytecode instructions of the lines in `kept_steps.json`, if this is the pure
build and the Python there. Of any other line it compares the ratio, and if that grew, the median of
three runs.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
# It is last, so that `PYTHONPATH=build/compiled python bench` measures that build.
sys.path.append(str(HERE.parent))

from bench import (  # noqa: E402  # after the path
    canisters,
    chains,
    events,
    node,
    outer,
    peer,
    prism,
    tries,
)
from bench.measure import PURE, Race, Result, instructions  # noqa: E402  # the same
from pubsub_emulator.cli.streams import prepare_streams  # noqa: E402  # the same

KEPT: Final = HERE / "kept.json"
KEPT_STEPS: Final = HERE / "kept_steps.json"
COUNTED: Final = ("validate_block", "relay block")
"""The beginnings of the names of the lines whose instructions are kept."""
STEPS_TOLERANCE: Final = 0.01
"""The share by which a number of instructions may grow."""
PYTHON: Final = f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"
COLD_START: Final = "pubsub --help"
BUILD: Final = "pure" if PURE else "compiled"


MAKERS: Final = {
    "W1 W2 W3 W4": tries.races,
    "relay block": chains.relay_blocks,
    "plan": chains.walks,
    "validate_block": chains.blocks,
    "fuzz cases": chains.fuzz_cases,
    "history writing": outer.history,
    "events:": events.races,
    "prism:": prism.races,
    "node:": node.races,
    "icrc72:": canisters.races,
}
"""The functions that make the races whose names begin with a key.

They build tries and networks, which takes longer than running the races.
"""


def chosen(only: list[str]) -> list[str]:
    """Return the keys of `MAKERS` that are needed for the given parts of names.

    A part that matches no key, or an empty list, selects all keys.
    """
    parts = [part for part in only if part not in COLD_START]
    wanted = [
        {beginning for beginning in MAKERS if part in beginning or beginning in part} or set(MAKERS)
        for part in parts
    ]
    return [
        beginning for beginning in MAKERS if not only or any(beginning in keys for keys in wanted)
    ]


def measured(
    only: list[str],
    *,
    quick: bool,
    peers: bool,
    own: bool = True,
    run: Callable[[Race], Result] = Race.run,
) -> Iterator[Result]:
    """Run every line whose name contains one of `only`, or all of them."""
    mine = [MAKERS[beginning] for beginning in chosen(only)] if own else []
    for race in chain(*(made() for made in mine), peer.races() if peers else ()):
        if not only or any(part in race.name for part in only):
            yield run(replace(race, pairs=max(3, race.pairs // 4)) if quick else race)
    if own and (not only or any(part in COLD_START for part in only)):
        yield outer.cold_start()


def row(result: Result) -> str:
    """Return a result as a line of the table."""
    target = "" if result.target is None else f"≤ {result.target:g}"
    note = f" ({result.note})" if result.note else ""
    return (
        f"| {result.name}{note} | {result.milliseconds:.2f} | {result.base} |"
        f" {result.base_milliseconds:.2f} | {result.ratio:.2f} | {target} |"
    )


def grown(results: list[Result], tolerance: float) -> list[str]:
    """Return a message for each line whose ratio grew by more than `tolerance`.

    The ratios are compared with the kept ones of this build.
    """
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    known = {(line["name"], line["base"]): line["ratio"] for line in kept.get(BUILD, [])}
    return [
        f"{result.name}: {result.ratio:.2f}, kept {known[result.name, result.base]:.2f}"
        for result in results
        if result.ratio > known.get((result.name, result.base), float("inf")) * (1 + tolerance)
    ]


def is_counted(race: Race) -> bool:
    """Return whether the instruction count of a line is stored.

    It is stored in the pure build, for one line of each name.
    """
    return PURE and race.name.startswith(COUNTED) and race.base.startswith("hashing")


def kept_steps() -> dict[str, int]:
    """Return the stored counts of bytecode instructions, by the name of a line of the table.

    They were counted with this version of Python, because those of others cannot be compared.
    """
    kept: dict[str, dict[str, int]] = json.loads(KEPT_STEPS.read_text(encoding="utf-8"))
    return kept.get(PYTHON, {})


def check(race: Race, kept: Mapping[str, int], tolerance: float, worse: list[str]) -> Result:
    """Run a line and add to `worse` if it grew."""
    result = race.run()
    if is_counted(race) and race.name in kept:
        steps = instructions(race.work).total()
        if steps > kept[race.name] * (1 + STEPS_TOLERANCE):
            worse.append(f"{race.name}: {steps:,} instructions, kept {kept[race.name]:,}")
    elif grown([result], tolerance):
        runs = sorted((result, race.run(), race.run()), key=lambda run: run.ratio)
        result = runs[1]
        worse += grown([result], tolerance)
    return result


def count(race: Race, into: dict[str, int]) -> Result:
    """Run a line, and add its instructions to `into` if they are kept."""
    if is_counted(race):
        into[race.name] = instructions(race.work).total()
    return race.run()


def keep_steps(steps: Mapping[str, int]) -> None:
    """Replace the kept instructions of these lines, for this version of Python."""
    kept: dict[str, dict[str, int]] = (
        json.loads(KEPT_STEPS.read_text(encoding="utf-8")) if KEPT_STEPS.exists() else {}
    )
    kept[PYTHON] = {**kept.get(PYTHON, {}), **steps}
    KEPT_STEPS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def keep(results: list[Result]) -> None:
    """Replace the kept results of these lines, for this build."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    lines = {(line["name"], line["base"]): line for line in kept.get(BUILD, [])}
    lines |= {(result.name, result.base): asdict(result) for result in results}
    kept[BUILD] = list(lines.values())
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure the lines, print them, and compare or keep them. Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=[], help="parts of names")
    parser.add_argument("--quick", action="store_true", help="a quarter of the pairs")
    peers = parser.add_mutually_exclusive_group()
    peers.add_argument(
        "--no-peer", action="store_true", help="without smoldot (Node.js) and native tries (cargo)"
    )
    peers.add_argument(
        "--only-peer", action="store_true", help="beside smoldot and native tries, nothing else"
    )
    parser.add_argument("--json", type=Path, help="write the lines there too")
    parser.add_argument("--check", action="store_true", help="compare with the kept table")
    parser.add_argument(
        "--tolerance", type=float, default=0.25, help="by how much a ratio may grow (default 0.25)"
    )
    parser.add_argument("--keep", action="store_true", help="make this run the kept table")
    given = parser.parse_args()
    prepare_streams()
    print(
        f"{BUILD} build, CPython {platform.python_version()}, {platform.machine()}; CPU time,"
        " medians of pairs\n"
    )
    print("| workload | ms | beside | ms | ratio | target |\n|---|---|---|---|---|---|")
    results: list[Result] = []
    worse: list[str] = []
    steps: dict[str, int] = {}
    run: Callable[[Race], Result] = Race.run
    if given.check:
        run = partial(check, kept=kept_steps(), tolerance=given.tolerance, worse=worse)
    elif given.keep:
        run = partial(count, into=steps)
    for result in measured(
        given.only,
        quick=given.quick,
        peers=not given.no_peer,
        own=not given.only_peer,
        run=run,
    ):
        results.append(result)
        print(row(result), flush=True)
    if given.json is not None:
        lines = {"build": BUILD, "lines": [asdict(result) for result in results]}
        given.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    if given.keep:
        keep(results)
        keep_steps(steps)
    if given.check:
        worse += grown([result for result in results if result.name == COLD_START], given.tolerance)
    for line in worse:
        print(f"grown: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
