"""The whole bench: `python -m bench`, from the project's folder.

python -m bench [--only W2 plan …] [--quick] [--json FILE]
python -m bench --check [--tolerance 0.25]     compare the ratios with the kept table; the exit
                                               code is 1 if one grew
python -m bench --keep                         make this run the kept table
"""

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
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
from bench.measure import PURE, Result  # noqa: E402  # the same
from pubsub_emulator.cli.streams import prepare_streams  # noqa: E402  # the same

KEPT: Final = HERE / "kept.json"
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
    # what makes the races whose names begin so, by building tries and networks, which takes longer
    # than running them
}


def chosen(only: list[str]) -> list[str]:
    """Return the keys of `MAKERS` that are needed for the given parts of names.

    A part that matches no key, or an empty list, selects all keys.
    """
    parts = [part for part in only if part not in COLD_START]
    found = [
        {begins for begins in MAKERS if part in begins or begins in part} or set(MAKERS)
        for part in parts
    ]
    return [begins for begins in MAKERS if not only or any(begins in each for each in found)]


def measured(only: list[str], *, quick: bool, peers: bool, own: bool = True) -> Iterator[Result]:
    """Every line whose name contains one of `only`, or all of them."""
    mine = [MAKERS[begins] for begins in chosen(only)] if own else []
    for race in chain(*(made() for made in mine), peer.races() if peers else ()):
        if not only or any(part in race.name for part in only):
            yield (replace(race, pairs=max(3, race.pairs // 4)) if quick else race).run()
    if own and (not only or any(part in COLD_START for part in only)):
        yield outer.cold_start()


def row(result: Result) -> str:
    """One line of the table."""
    target = "" if result.target is None else f"≤ {result.target:g}"
    note = f" ({result.note})" if result.note else ""
    return (
        f"| {result.name}{note} | {result.milliseconds:.2f} | {result.base} |"
        f" {result.base_milliseconds:.2f} | {result.ratio:.2f} | {target} |"
    )


def grown(results: list[Result], tolerance: float) -> list[str]:
    """The lines whose ratio is above the kept one by more than `tolerance`."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    known = {(line["name"], line["base"]): line["ratio"] for line in kept.get(BUILD, [])}
    return [
        f"{result.name}: {result.ratio:.2f}, kept {known[result.name, result.base]:.2f}"
        for result in results
        if result.ratio > known.get((result.name, result.base), float("inf")) * (1 + tolerance)
    ]


def keep(results: list[Result]) -> None:
    """Write these lines over the kept ones of this build."""
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    lines = {(line["name"], line["base"]): line for line in kept.get(BUILD, [])}
    lines |= {(result.name, result.base): asdict(result) for result in results}
    kept[BUILD] = list(lines.values())
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Measure, print, compare."""
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
    for result in measured(
        given.only, quick=given.quick, peers=not given.no_peer, own=not given.only_peer
    ):
        results.append(result)
        print(row(result), flush=True)
    if given.json is not None:
        lines = {"build": BUILD, "lines": [asdict(result) for result in results]}
        given.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    if given.keep:
        keep(results)
    worse = grown(results, given.tolerance) if given.check else []
    for line in worse:
        print(f"grown: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
