"""`pubsub fuzz --target`: inputs of readers are mutated, a file is replayed, targets are listed."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.fuzz.campaigns import Campaign
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.fuzz.targets import ALL
from pubsub_emulator.laboratory.mutation import Mutated, mutate_target
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.words import counted

MOST_OUTCOMES: Final = 12


def run_targets(names: tuple[str, ...], request: Campaign) -> Result:
    """Mutate the inputs of the named targets, or of all, and write the surprising inputs.

    The minutes of the request are shared by the targets. Raises `InputError`.
    """
    known = {target.name: target for target in ALL}
    for name in names:
        if name not in known and name != "all":
            hint = near_to(name, known, f"targets: {', '.join(known)}, all")
            raise InputError(f"unknown target {name!r}; {hint}")
    picked = (
        list(known.values()) if "all" in names else [known[name] for name in dict.fromkeys(names)]
    )
    results: list[Mutated] = []
    written: list[Path] = []
    minutes_each = None if request.minutes is None else request.minutes / len(picked)
    total = None if request.most is None else request.most * len(picked)
    amount = (
        f"{request.minutes:g} minutes in all"
        if request.most is None
        else f"{request.most:,} mutations each"
    )
    with stage(f"{counted(len(picked), 'target')}, {amount}", total) as advance:
        for index, target in enumerate(picked):
            done_before = 0 if request.most is None else index * request.most
            result = mutate_target(
                target,
                request.counted,
                request.seed,
                minutes=minutes_each,
                kept=request.out / "corpus" / target.name,
                on_progress=partial(_advance, advance, done_before, total, target.name),
            )
            results.append(result)
            written += _write(result, request.out)
    _show(results)
    if written:
        files("surprises:", ((path, "") for path in written))
    surprises = sum(len(result.surprises) for result in results)
    document = {"targets": list(map(_document, results)), "surprising": surprises, "files": written}
    return Result(document, FINDINGS if surprises else 0)


def _advance(
    advance: ProgressCallback, done_before: int, total: int | None, name: str, done: int
) -> None:
    """Show that a target has tried `done` mutations, after `done_before` of earlier targets."""
    advance(done_before + done, total, name)


def replay_targets(names: tuple[str, ...], path: Path) -> Result:
    """Read one file with the named target.

    Raises `InputError`, and `PubsubError` if the target refuses it.
    """
    known = {target.name: target for target in ALL}
    if len(names) != 1 or names[0] not in known:
        raise InputError(f"--replay needs exactly one --target. Targets: {', '.join(known)}")
    try:
        outcome = known[names[0]].read(path.read_bytes())
    except PubsubError:
        raise
    # A reader must only raise `PubsubError`. Every other exception is a surprise.
    except Exception as failure:  # noqa: BLE001
        say(f"{names[0]}: {type(failure).__name__}: {failure}")
        return Result(
            {"target": names[0], "surprise": f"{type(failure).__name__}: {failure}"}, FINDINGS
        )
    say(f"{names[0]}: {outcome}")
    return Result({"target": names[0], "surprise": "", "outcome": outcome}, 0)


def list_targets() -> Result:
    """List every target and its input."""
    table("targets", ("name", "reads"), ((target.name, target.about) for target in ALL))
    return Result({target.name: target.about for target in ALL})


def _write(result: Mutated, out: Path) -> list[Path]:
    """Write each surprising input into a file, named after its target and its hash."""
    paths = []
    for surprise in result.surprises:
        path = out / f"{result.target}-{blake2_256(surprise.data).hex()[:12]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(surprise.data)
        paths.append(path)
    return paths


def _show(results: list[Mutated]) -> None:
    """Print a row for each target, and a line for each surprise."""
    rows: list[tuple[object, ...]] = []
    for result in results:
        pace = f"{result.tried / result.seconds:,.0f}" if result.seconds else ""
        counts = (len(result.outcomes), result.lines, result.corpus, len(result.surprises))
        rows.append((result.target, f"{result.tried:,}", pace, *counts))
    table(
        "mutations by target",
        ("target", "tried", "a second", "outcomes", "lines", "corpus", "surprises"),
        rows,
    )
    for result in results:
        for surprise in result.surprises:
            say(f"{result.target}: {surprise.what}")


def _document(result: Mutated) -> dict[str, object]:
    reported = {
        name: value
        for name, value in asdict(result).items()
        if name not in ("surprises", "outcomes")
    }
    reported["outcomes"] = dict(result.outcomes.most_common(MOST_OUTCOMES))
    return {**reported, "surprises": [surprise.what for surprise in result.surprises]}
