"""`pubsub replay`: replays fixtures, surprises of a campaign and differences of two verifiers.

The kind of a file is recognized by its content.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say
from pubsub_emulator.collator.cheats.steps import to_json
from pubsub_emulator.emulator.fixtures import read_fixture, replay_fixture
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.inspection.kinds import kind_of
from pubsub_emulator.laboratory.campaign import replay
from pubsub_emulator.laboratory.cases import Found
from pubsub_emulator.laboratory.differences import read_difference
from pubsub_emulator.runtime.rules import Rules

MOST_STEPS: Final = 12


def run_replay(paths: Sequence[Path], rules: Rules) -> Result:
    """Replay stored cases and print each difference. Cases are judged by `rules`.

    Raises `InputError` and the errors of the readers.
    """
    surprising = 0
    replayed = []
    for path in paths:
        for file, kind in _recognise(path):
            differences = _PLAYED[kind](file, rules)
            replayed.append(
                {
                    "file": file,
                    "kind": kind,
                    "as_expected": not differences,
                    "differences": differences,
                }
            )
            if differences:
                surprising += 1
            say(
                f"{file}: {'as expected' if not differences else 'SURPRISING'}",
                *(f"  {difference}" for difference in differences),
            )
    say(f"{len(replayed)} played, {surprising} surprising")
    return Result(
        {"played": len(replayed), "surprising": surprising, "files": replayed},
        FINDINGS if surprising else 0,
    )


def _recognise(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield each case, difference and fixture at a path, with its kind.

    Other JSON files in a folder are skipped. Raises `InputError` if there is nothing to replay.
    """
    if not path.is_dir():
        kind = _kind(path)
        if kind is None:
            raise InputError(
                f"{path}: neither a case of a campaign, nor a fixture, nor a difference of two"
                " verifiers"
            )
        yield path, kind
        return
    recognised = [
        (file, kind) for file in sorted(path.glob("*.json")) if (kind := _kind(file)) is not None
    ]
    if not recognised:
        raise InputError(
            f"{path}: the folder has no case of a campaign, fixture or difference of two verifiers"
        )
    yield from recognised


def _kind(path: Path) -> str | None:
    """Return the kind of a JSON file, or `None` if it cannot be replayed."""
    kind = kind_of(read_json(path, error=InputError))
    return kind if kind in _PLAYED else None


def _play_case(path: Path, rules: Rules) -> list[str]:
    """Replay and print a case. Return the differences from its expectation."""
    result = replay(path, rules)
    case = result.case
    subject = "a proof alone" if case.block is None else f"block {case.block.header.number}"
    strategies = " + ".join(case.strategies) or "the honest block"
    say(f"{strategies} on {subject}, {len(case.proof)} honest proof nodes")
    count = "the same" if case.steps == case.shrunk else f"shrunk from {len(case.steps)}"
    say(f"  steps: {len(case.shrunk)} ({count})")
    for step in case.shrunk[:MOST_STEPS]:
        say(f"    {json.dumps(to_json(step))[:120]}")
    if len(case.shrunk) > MOST_STEPS:
        say(f"    and {len(case.shrunk) - MOST_STEPS} more")
    recorded = "" if result.reproduced else f", {_names(case.verdicts)} when it was recorded"
    verdicts = f"expected {_names(case.expected)}, found {_names(result.shrunk)}"
    say(f"  {verdicts}{recorded}")
    if not result.surprising:
        return []
    differences = [f"shrunk: {verdicts}"]
    if result.full != result.shrunk:
        differences.append(f"full sequence: found {_names(result.full)}")
    return differences


def _play_fixture(path: Path, _rules: Rules) -> list[str]:
    """Replay a fixture and return the differences.

    Fixtures are made by the shipped rules.
    """
    return replay_fixture(read_fixture(path))


def _play_difference(path: Path, _rules: Rules) -> list[str]:
    """Judge a stored difference again and print it. If it persists, return a line about it.

    Two verifiers are compared under the shipped rules.
    """
    difference = read_difference(path)
    strategies = " + ".join(difference.strategies) or "the honest block"
    say(f"{strategies} on chain {difference.chain}, judged by two verifiers")
    say(f"  recorded: ours {difference.ours}, theirs {difference.theirs}")
    verdicts = difference.found
    ours_now = "the bytes do not decode" if verdicts is None else _names(verdicts)
    say(f"  ours now: {ours_now}")
    if difference.now == difference.theirs:
        return []
    return [f"the two still differ: ours {difference.now}, theirs {difference.theirs}"]


_PLAYED: Final[dict[str, Callable[[Path, Rules], list[str]]]] = {
    "case": _play_case,
    "fixture": _play_fixture,
    "difference": _play_difference,
}


def _names(verdicts: Found) -> str:
    """Return verdicts in words."""
    return ", ".join(verdicts) or "accepted"
