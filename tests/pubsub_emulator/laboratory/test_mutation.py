"""Every reader of what a stranger may have made takes a file or refuses it; what does neither is
found.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.plumbing.command import pubsub

from pubsub_emulator.cli.exits import FINDINGS, USAGE
from pubsub_emulator.fuzz.targets import ALL
from pubsub_emulator.laboratory.mutation import Mutated, Target, mutate_bytes, mutate_target
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError

ROOT = Path(__file__).resolve().parents[3]
SLOW = {"icrc", "liveness", "metadata", "table"}
QUICK = [target for target in ALL if target.name not in SLOW]


class Refused(PubsubError):
    """What a well-behaved reader raises."""


def reader(data: bytes) -> str:
    """Takes JSON lists of numbers below ten, and fails on what holds a 255."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    if not isinstance(document, list) or not all(isinstance(each, int) for each in document):
        raise Refused("not a list of numbers")
    if 255 in document:
        raise ZeroDivisionError("too much")
    return f"{min(len(document), 3)} numbers"


TOY = Target("toy", "lists of numbers", lambda: [b"[1, 2]", b"[]"], reader, True, (__name__,))


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_a_reader_takes_a_file_or_refuses_it(target: Target) -> None:
    result = mutate_target(target, 16, "test")
    assert [surprise.what for surprise in result.surprises] == []
    assert result.tried == 16
    seeds_are_taken = any(outcome.startswith("read: ") for outcome in result.outcomes)
    assert seeds_are_taken or target.name in {
        "proof",
        "compact",
        "finding",
        "evidence",
    }, result.outcomes


def test_a_reader_that_does_neither_is_found_with_the_input() -> None:
    result = mutate_target(TOY, 4000, "much")
    assert {surprise.what for surprise in result.surprises} == {"!ZeroDivisionError: too much"}
    with pytest.raises(ZeroDivisionError):
        reader(result.surprises[0].data)


def test_the_same_seed_tries_the_same_inputs() -> None:
    def told(result: Mutated) -> object:
        return result.outcomes, result.corpus, result.lines

    assert told(mutate_target(TOY, 300, "a")) == told(mutate_target(TOY, 300, "a"))
    assert told(mutate_target(TOY, 300, "a")) != told(mutate_target(TOY, 300, "b"))


def test_what_is_new_joins_a_corpus_that_is_kept(tmp_path: Path) -> None:
    first = mutate_target(TOY, 400, "a", kept=tmp_path)
    kept = sorted(path.read_bytes() for path in tmp_path.iterdir())
    assert 0 < len(kept) <= first.corpus - 2
    again = mutate_target(TOY, 0, "a", kept=tmp_path)
    assert again.corpus == len(kept) + 2
    assert again.lines == first.lines


def test_a_campaign_ends_with_its_time() -> None:
    assert mutate_target(TOY, 10**9, minutes=0).tried == 0


def test_lines_are_noted_of_the_modules_asked_for_only() -> None:
    assert mutate_target(TOY, 200, "a").lines > 3
    assert (
        mutate_target(
            Target("toy", "", TOY.seeds, TOY.read, True, ("pubsub_emulator.trie",)), 200, "a"
        ).lines
        == 0
    )
    assert sys.gettrace() is None or "coverage" in sys.modules


def test_bytes_are_changed_in_every_way() -> None:
    draws, data = Draws(b"bytes", "test"), bytes(range(64))
    made = {mutate_bytes(data, [data, b"other" * 9], draws) for _ in range(400)}
    assert any(len(each) < len(data) for each in made)
    assert any(len(each) == len(data) and each != data for each in made)
    assert any(len(each) > len(data) for each in made)
    assert any(b"other" in each for each in made)
    assert mutate_bytes(b"", [b""], draws) is not None


def test_the_command_mutates_lists_and_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        pubsub(
            monkeypatch, "fuzz", "--target", "header", "--cases", 50, "--out", tmp_path, "--json"
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert (told["targets"][0]["target"], told["targets"][0]["tried"]) == ("header", 50)
    assert pubsub(monkeypatch, "fuzz", "--target", "all", "--list") == 0
    assert "an upward message" in capsys.readouterr().out
    assert pubsub(monkeypatch, "fuzz", "--target", "nobody") == USAGE
    assert "unknown target 'nobody'" in capsys.readouterr().err


def test_a_surprise_is_shrunk_and_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    smaller = replace(TOY, shrink=lambda _data: b"[255]")
    monkeypatch.setattr("pubsub_emulator.cli.commands.fuzz.target_runs.ALL", (smaller,))
    assert (
        pubsub(monkeypatch, "fuzz", "--target", "toy", "--cases", 4000, "--out", tmp_path)
        == FINDINGS
    )
    (written,) = tmp_path.glob("toy-*")
    assert written.read_bytes() == b"[255]"
    assert pubsub(monkeypatch, "fuzz", "--target", "toy", "--replay", written) == FINDINGS
    assert "ZeroDivisionError: too much" in capsys.readouterr().out
    written.write_bytes(b"[1]")
    assert pubsub(monkeypatch, "fuzz", "--target", "toy", "--replay", written) == 0
    assert pubsub(monkeypatch, "fuzz", "--replay", written) == USAGE
    assert "--replay needs exactly one --target" in capsys.readouterr().err
