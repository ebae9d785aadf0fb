"""PS-52 and PS-53 by attack: thousands of changed proofs, and what becomes of a verifier that is
wrong.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.collator.cheats import SITUATIONS, situations
from support.plumbing.examples import scaled

from pubsub_emulator.collator.cheats import expected, for_any_chain
from pubsub_emulator.collator.cheats.steps import CheatStep, Drop, shrink
from pubsub_emulator.laboratory.campaign import CampaignResult, campaign, corpus, replay_case
from pubsub_emulator.laboratory.cases import Case, JudgingContext
from pubsub_emulator.laboratory.novelty import PROGRESS, BadCorpus, read_corpus
from pubsub_emulator.laboratory.surprises import SurpriseKind, Surprises
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.header import DigestKind
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.parachain import validate
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, Verdict
from pubsub_emulator.runtime.parachain.validate import RelayContext

MUTATIONS = ("any-mutation", "any-subset", "another-set")


def described(result: CampaignResult) -> list[str]:
    return [
        f"{case.label} {case.strategies}: {case.expected} but {case.verdicts}"
        for case in result.surprises
    ]


def test_ps_52_of_thousands_of_changed_proofs_none_is_accepted_but_the_canonical_one() -> None:
    result = campaign(12_000, "canonical", MUTATIONS, first=())
    assert described(result) == []
    assert result.cases == 12_000
    assert result.rejected > 11_000
    assert result.accepted_equal == result.cases - result.rejected
    assert result.stopped > 10
    verdicts = {verdict for row in result.by_strategy.values() for verdict in row}
    assert verdicts == {
        "no effect",
        "DuplicateNode",
        "UnsortedProof",
        "RootMismatch",
        "OmittedBelowBudget",
        "UnusedNodes",
    }


def test_ps_52_a_walk_that_takes_the_keys_of_relay_headers_is_the_same() -> None:
    # With this seed, the first world has an honest block with descendants of its relay parent.
    result = campaign(5, "1", first=())
    assert described(result) == []
    assert result.honest == 1


def test_ps_52_every_strategy_is_tried_in_one_campaign_and_meets_what_it_must() -> None:
    told: list[tuple[int, int]] = []
    result = campaign(
        1_500, "everyone", on_progress=lambda done, wanted: told.append((done, wanted)), first=()
    )
    assert described(result) == []
    assert result.cases == 1_500
    assert result.honest > 10
    assert told == [(done, 1_500) for done in range(256, 1_500, 256)]
    counts = [result.tried[name] for name in for_any_chain() if name not in result.missed]
    assert min(counts) >= 1
    # The others need worlds that are rare, such as one whose blocks show relay headers.
    assert len(result.missed) < 17
    few = campaign(3, b"few", first=())
    assert len(few.missed) >= len(for_any_chain()) - 9
    assert not set(few.missed) & set(few.tried)
    assert few.by_strategy == campaign(3, "few", first=()).by_strategy


@pytest.mark.parametrize(
    ("name", "case"), [pytest.param(name, case, id=name) for name, case in corpus()]
)
def test_the_corpus_is_judged_as_it_says(name: str, case: Case) -> None:
    again = replay_case(case)
    assert not again.surprising, name
    assert again.reproduced
    assert again.full == case.expected
    if case.block is None:
        assert case.expected_of_proof(case.shrunk) == case.expected


def test_the_corpus_has_a_case_of_every_strategy() -> None:
    assert {name for _, case in corpus() for name in case.strategies} == set(for_any_chain())


@pytest.mark.parametrize("name", ["omit-node", "forge-message", "stranger"])
def test_a_case_survives_being_written_down(name: str) -> None:
    case = dict(corpus())[f"{name}.json"]
    again = Case.from_json(case.to_json())
    assert again.to_json() == case.to_json()
    assert (
        again.judging.parent.state.root()
        == case.judging.parent.state.root()
        == case.judging.parent.header.state_root
    )
    assert (again.block, again.steps, again.shrunk) == (case.block, case.steps, case.shrunk)


def test_a_surprise_is_shrunk_to_the_steps_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_unused", lambda _source, _walked: [])
    found: list[Case] = []
    monkeypatch.setattr(Surprises, "add", lambda _self, case, _count=1: found.append(case))
    campaign(200, "planted", ("another-set", "over-budget"), first=())
    accepted = [case for case in found if not case.verdicts]
    longest = max(accepted, key=lambda case: len(case.steps))
    assert len(longest.steps) > 5
    assert len(longest.shrunk) == 1
    assert longest.play(longest.shrunk) == longest.verdicts == ()


def test_one_defect_is_one_group_of_which_the_smallest_case_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "_unused", lambda _source, _walked: [])
    result = campaign(200, "planted", ("add-junk",), first=(), out=tmp_path)
    assert result.found.total > 20
    assert result.accepted_equal == 0, "what was accepted wrongly is not counted as valid"
    assert result.found.count(SurpriseKind.ACCEPTED) > 150
    assert len(result.surprises) <= 6, "a few kinds of junk, in blocks and in proofs alone"
    assert sorted(result.files) == sorted(tmp_path.iterdir())
    assert len(result.surprises[0].shrunk) == 1


def test_a_campaign_with_a_corpus_goes_on_where_it_ended(tmp_path: Path) -> None:
    kept = tmp_path / "corpus"
    campaign(150, "long", first=(), kept=kept)
    first = json.loads((kept / PROGRESS).read_text())["seeds"]["long"]["next_world"]
    cases_ = read_corpus(kept)
    assert first >= 1
    assert {verdict for case in cases_ for verdict in case.verdicts} >= {
        "OmittedBelowBudget",
        "UnusedNodes",
    }
    assert not any(replay_case(case).surprising for case in cases_)
    again = campaign(150, "long", first=(), kept=kept)
    assert json.loads((kept / PROGRESS).read_text())["seeds"]["long"]["next_world"] > first
    assert again.surprises == []
    assert len(read_corpus(kept)) >= len(cases_)
    assert campaign(50, "other", first=(), kept=kept).cases == 50


def test_a_campaign_ends_at_its_time_limit_or_when_stopped() -> None:
    assert campaign(None, "time", first=(), minutes=0).cases == 0
    asked = iter([False] * 40)
    assert 0 < campaign(None, "time", first=(), stop=lambda: next(asked, True)).cases < 41


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / PROGRESS).write_text('{"format": "else"}')
    with pytest.raises(BadCorpus, match=r"progress\.json: not a corpus"):
        campaign(1, "x", first=(), kept=tmp_path)
    (tmp_path / PROGRESS).write_text(
        '{"format": "pubsub-corpus/1", "seeds": {"x": {"next_world": "7"}}}'
    )
    with pytest.raises(BadCorpus, match="next_world"):
        campaign(1, "x", first=(), kept=tmp_path)


def test_a_surprise_of_the_corpus_is_reported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "check_parent", lambda _parent, _header: [])
    result = campaign(0, "corpus", first=[dict(corpus())["bad-parent.json"]])
    assert [case.strategies for case in result.surprises] == [("bad-parent",)]


def test_ps_53_a_verifier_that_writes_to_the_parents_state_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = validate.judge_block

    def careless(parent: ChainHead, candidate: Candidate, relay: RelayContext) -> object:
        storage = Storage(parent.state)
        storage.put(b"left behind", b"by a verifier")
        storage.commit()
        return genuine(parent, candidate, relay)

    monkeypatch.setattr(validate, "judge_block", careless)
    result = campaign(3, "careless", ("wrong-state-root",), first=())
    assert any(
        "state was written to" in found for case in result.surprises for found in case.verdicts
    )


def test_ps_54_a_verifier_that_fails_on_hostile_input_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fragile(*_: object) -> object:
        raise IndexError("hostile")

    monkeypatch.setattr(validate, "judge_proof", fragile)
    result = campaign(3, "fragile", ("add-junk",), first=())
    assert {case.verdicts for case in result.surprises} == {("!IndexError: hostile",)}


@given(count=st.integers(0, 30), needed=st.sets(st.integers(0, 29), max_size=5))
def test_shrinking_leaves_exactly_the_steps_that_matter(count: int, needed: set[int]) -> None:
    steps: tuple[CheatStep, ...] = tuple(Drop(bytes((i,))) for i in range(count))
    matter = {Drop(bytes((i,))) for i in needed if i < count}
    tried = 0

    def still(rest: tuple[CheatStep, ...]) -> bool:
        nonlocal tried
        tried += 1
        return matter <= set(rest)

    assert set(shrink(steps, still)) == matter
    assert tried <= count * count + 64


@settings(max_examples=scaled(200))
@given(at=st.integers(0, SITUATIONS - 1), place=st.integers(0, 1 << 20), bit=st.integers(0, 7))
def test_ps_54_a_block_with_any_bit_flipped_does_not_decode_or_is_refused(
    at: int, place: int, bit: int
) -> None:
    now = situations()[at]
    data = bytearray(now.honest.encode())
    data[place % len(data)] ^= 1 << bit
    try:
        flipped = Candidate.decode(bytes(data))
    except ScaleError:
        return
    verdicts = JudgingContext.of(now).judge(flipped)
    assert verdicts[:1] == ("BadSeal",)
    assert verdicts == tuple(verdict.value for verdict in expected(now, flipped))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"kind": DigestKind.CONSENSUS},
            id="kind",
        ),
        pytest.param(
            {"engine": b"BABE"},
            id="engine",
        ),
        pytest.param(
            {"data": bytes(7)},
            id="data",
        ),
    ],
)
def test_a_header_without_a_slot_has_the_state_of_its_own_digest(change: dict[str, Any]) -> None:
    """The digest is a part of the state, so a header that names no slot leads to another root than
    the honest one.
    """
    for now in situations():
        slot, *others = now.honest.header.digest
        header = replace(now.honest.header, digest=(replace(slot, **change), *others))
        unslotted = replace(now.honest, header=header)
        assert expected(now, unslotted) == (Verdict.BAD_SEAL, Verdict.STATE_ROOT_MISMATCH)
        assert JudgingContext.of(now).judge(unslotted) == ("BadSeal", "StateRootMismatch")
