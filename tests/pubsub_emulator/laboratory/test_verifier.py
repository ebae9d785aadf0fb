"""A second verifier beside ours: the protocol, what a difference is, and programs that do not keep
to it.
"""

import json
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.laboratory.campaign import corpus
from pubsub_emulator.laboratory.cases import BadCase
from pubsub_emulator.laboratory.differences import read_difference
from pubsub_emulator.laboratory.verifier import (
    FORMAT,
    VerifierAnswer,
    VerifierFailed,
    VerifierProcess,
    compare_verifiers,
    keep,
)
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.validate import RelayContext, validate_block

ALL = frozenset(verdict.value for verdict in Verdict)
CASES = 40


def judge(case: dict[str, Any]) -> VerifierAnswer:
    """What the case alone says, by the project's own verifier: the case must hold all that is
    needed.
    """
    assert case["format"] == FORMAT
    try:
        candidate = Candidate.decode(unhex(case["candidate"]))
    except ScaleError as error:
        return VerifierAnswer(frozenset(), frozenset(), str(error))
    root = case["relay"]["storage_root"]
    context = RelayContext(
        RelayBlockNumber(case["relay"]["number"]),
        None if root is None else Hash(unhex(root)),
        Slot(case["relay"]["slot_now"]),
    )
    state = State.from_entries([(unhex(key), unhex(value)) for key, value in case["pre_state"]])
    try:
        validate_block(
            ChainHead(Header.decode(unhex(case["parent_header"])), state), candidate, context
        )
    except InvalidBlock as refusal:
        return VerifierAnswer(ALL, frozenset(offence.verdict.value for offence in refusal.evidence))
    return VerifierAnswer(ALL, frozenset())


def test_a_case_holds_all_that_a_verifier_needs() -> None:
    found = compare_verifiers(judge, CASES, "7")
    assert (found.cases, found.differing, found.judged) == (CASES, 0, set(ALL))
    assert len(found.by_verdict) > 4
    assert found.by_verdict["undecodable"] > 0


def test_kept_cases_are_judged_first_and_a_stop_ends_the_rest() -> None:
    kept = [case for _, case in corpus()]
    blocks = [case for case in kept if case.block is not None]
    asked: list[str] = []

    def note(case: dict[str, Any]) -> VerifierAnswer:
        asked.append(case["candidate"])
        return judge(case)

    found = compare_verifiers(note, 10_000, "7", first=kept, stop=lambda: True)
    assert (found.cases, found.differing) == (len(blocks), 0)
    assert asked == [
        hexed(case.changed_block(case.block, case.shrunk).encode())
        for case in blocks
        if case.block is not None
    ]


def test_the_same_seed_asks_the_same() -> None:
    asked: list[list[str]] = [[], []]
    for cases in asked:

        def note(case: dict[str, Any], cases: list[str] = cases) -> VerifierAnswer:
            cases.append(json.dumps(case))
            return judge(case)

        compare_verifiers(note, 20, "8")
    assert asked[0] == asked[1]


def test_a_verifier_that_accepts_a_cheat_is_found_and_its_case_shrunk(
    tmp_path: Path,
) -> None:
    def blind(case: dict[str, Any]) -> VerifierAnswer:
        answer = judge(case)
        return VerifierAnswer(answer.judged, answer.offences - {"UnusedNodes"}, answer.undecodable)

    found = compare_verifiers(blind, CASES, "7", ["add-junk", "omit-node"])
    assert found.differing > 1
    assert all("UnusedNodes" in each.ours for group in found.differences.values() for each in group)
    assert all(len(each.steps) == 1 for group in found.differences.values() for each in group)
    files = keep(found, tmp_path / "kept")
    assert len(files) == len(found.differences)
    kept = json.loads(files[0].read_text())
    assert kept["case"]["format"] == FORMAT
    assert "UnusedNodes" in kept["ours"]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A difference as it is kept: the other verifier takes unused nodes, and judges no seals."""

    def blind(case: dict[str, Any]) -> VerifierAnswer:
        answer = judge(case)
        return VerifierAnswer(
            answer.judged - {"BadSeal"},
            answer.offences - {"UnusedNodes", "BadSeal"},
            answer.undecodable,
        )

    path, *_ = keep(compare_verifiers(blind, 6, "7", ["add-junk"]), tmp_path_factory.mktemp("kept"))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_kept_difference_is_played_again_and_looked_into(
    document: dict[str, Any], tmp_path: Path
) -> None:
    path, run = tmp_path / "difference.json", CliRunner()
    path.write_text(json.dumps(document))
    played = run.invoke(pubsub, ["replay", str(path)])
    assert played.exit_code == 1
    assert "the two still differ: ours UnusedNodes, theirs no offence" in played.output
    seen = run.invoke(pubsub, ["inspect", str(path), "--json"])
    told = json.loads(seen.stdout)
    assert (told["kind"], told["theirs"], told["ours_now"]) == (
        "difference of two verifiers",
        "no offence",
        "UnusedNodes",
    )

    path.write_text(json.dumps({**document, "theirs": "UnusedNodes"}))
    assert run.invoke(pubsub, ["replay", str(tmp_path)]).exit_code == 0, "the two agree now"
    cut = {**document["case"], "candidate": document["case"]["candidate"][:-2]}
    path.write_text(
        json.dumps({**document, "case": cut, "ours": "undecodable", "theirs": "decodes"})
    )
    assert (
        "the two still differ: ours undecodable, theirs decodes"
        in run.invoke(pubsub, ["replay", str(path)]).output
    )


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("case", 7, "case: "),
        ("case.pre_state", [["0x00"]], "case.pre_state.0.1: "),
        ("case.pre_state", [["0x0", "0x00"]], "case.pre_state.0.0: "),
        ("case.relay", {}, "case.relay.number: "),
        ("case.parent_header", None, "case.parent_header: "),
        ("case.candidate", "00", "case.candidate: "),
        ("case.chain", "x", "case.chain: "),
        ("ours", 7, "ours: "),
        ("steps", {}, "steps: "),
        ("judged", [1], "judged.0: "),
    ],
)
def test_a_difference_that_somebody_has_changed_is_refused_with_its_place(
    document: dict[str, Any], tmp_path: Path, place: str, value: object, said: str
) -> None:
    changed, path = deepcopy(document), tmp_path / "difference.json"
    inner = changed["case"] if place.startswith("case.") else changed
    inner[place.rpartition(".")[2]] = value
    path.write_text(json.dumps(changed))
    with pytest.raises(BadCase) as refused:
        read_difference(path)
    assert str(refused.value).startswith(f"{path}: {said}")


def test_only_what_the_other_verifier_judges_is_compared() -> None:
    def seal_only(case: dict[str, Any]) -> VerifierAnswer:
        answer = judge(case)
        judged = frozenset({"BadSeal"})
        return VerifierAnswer(judged, answer.offences & judged, answer.undecodable)

    found = compare_verifiers(seal_only, CASES, "7")
    assert (found.differing, found.judged) == (0, {"BadSeal"})


def test_bytes_that_only_one_of_the_two_decodes_are_a_difference() -> None:
    found = compare_verifiers(
        lambda _case: VerifierAnswer(ALL, frozenset()), 40, "7", ["omit-node"]
    )
    assert "ours undecodable, theirs decodes" in found.differences


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit(3)", "ended"),
        ("input(); print('no json')", "no answer to case 5"),
        ("input(); print('{}')", "no answer to case 5"),
        ("input(); print('[' * 100000)", "no answer to case 5"),
        (
            """input(); print('{"id": 6, "judged": [], "offences": []}')""",
            "answered case 6 when asked for 5",
        ),
        (
            """input(); print('{"id": 5, "judged": ["Nice"], "offences": []}')""",
            "does not exist: 'Nice'",
        ),
        ("input(); print('x' * (2 << 20))", "longer than"),
        ("input(); input()", "did not answer within"),
    ],
)
def test_a_program_that_does_not_keep_to_the_protocol_is_one_error(
    program: str, message: str
) -> None:
    with (
        VerifierProcess(
            f'{sys.executable} -c "{program.replace(chr(34), chr(92) + chr(34))}"', patience=2
        ) as verifier,
        pytest.raises(VerifierFailed, match=message),
    ):
        verifier.judge({"id": 5})


def test_a_program_that_is_not_there_is_one_error() -> None:
    with pytest.raises(VerifierFailed, match=r"no-such-program: No such file"):
        VerifierProcess("no-such-program --verify")
    with pytest.raises(VerifierFailed, match="empty"):
        VerifierProcess("  ")


def test_answers_that_come_in_pieces_are_put_together(tmp_path: Path) -> None:
    program = tmp_path / "verifier.py"
    program.write_text(
        "import sys, time\n"
        "for line in sys.stdin:\n"
        """    for part in ('{"id": 1, "judged"', ': [], "offences": []}\\n'):\n"""
        "        sys.stdout.write(part)\n"
        "        sys.stdout.flush()\n"
        "        time.sleep(0.05)\n"
    )
    with VerifierProcess(f"{sys.executable} {program}") as verifier:
        assert verifier.judge({"id": 1}) == VerifierAnswer(frozenset(), frozenset())
        assert verifier.judge({"id": 1}) == VerifierAnswer(frozenset(), frozenset())
