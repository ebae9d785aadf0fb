"""The vectors as another implementation gets them: from the files alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.collator.cheats import for_any_chain
from pubsub_emulator.emulator.fixtures import (
    Fixture,
    FixtureError,
    read_fixture,
    replay_fixture,
    schema,
)
from pubsub_emulator.laboratory.fixture_set import (
    FOLDER,
    KEPT,
    README_FILE,
    SCHEMA_FILE,
    read_vectors,
)
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict
from pubsub_emulator.trie import state_root
from pubsub_emulator.trie.bulk import ordered_root

VALID_AFTER_ALL = {"drop-and-restore"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vectors") / "out"
    result = CliRunner().invoke(pubsub, ["fixtures", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="module")
def vectors(folder: Path) -> list[Fixture]:
    return read_vectors(folder)


def test_every_fixture_replays_as_it_says_and_fits_the_schema_beside_it(
    folder: Path, vectors: list[Fixture]
) -> None:
    validator = Draft202012Validator(json.loads((folder / SCHEMA_FILE).read_text()))
    readme = (folder / README_FILE).read_text()
    for fixture in vectors:
        assert replay_fixture(fixture) == [], fixture.name
        validator.validate(json.loads((folder / f"{fixture.name}.json").read_text()))
        assert f"`{fixture.name}.json`" in readme
    assert (
        len({fixture.name for fixture in vectors})
        == len(vectors)
        == len(list(folder.glob("*.json"))) - 1
    )


def test_ps_81_every_strategy_that_bytes_can_say_has_its_vector(vectors: list[Fixture]) -> None:
    refused = [
        fixture.about.partition(":")[0]
        for fixture in vectors
        if fixture.expected.verdict is not None
    ]
    assert set(refused) == set(for_any_chain()) - VALID_AFTER_ALL


def test_ps_52_every_verdict_stop_removal_and_policy_has_its_vector(vectors: list[Fixture]) -> None:
    assert {f.expected.verdict for f in vectors if f.expected.verdict} == {
        verdict.value
        for verdict in Verdict
        if verdict is not Verdict.BAD_EXTRINSIC  # no vector has accounts
    }
    accepted = [fixture for fixture in vectors if fixture.expected.verdict is None]
    for policy in CachePolicy:
        names = [f.name for f in accepted if f.name.startswith(f"accepted-{policy.value}-")]
        for kind in ("new-subscriptions", "unchanged", "update", "removal", "upgrade"):
            assert any(kind in name for name in names), (policy, kind)
    for policy in ("slots", "nodes"):
        for kind in ("stopped", "resumed", "messages", "order"):
            assert any(f.name.startswith(f"accepted-{policy}-{kind}") for f in accepted), (
                policy,
                kind,
            )
    assert any(fixture.expected.cursor is not None for fixture in accepted)
    assert {delivery.kind for f in accepted for delivery in f.expected.deliveries} == {
        "updated",
        "removed",
    }


def test_ps_53_a_refused_block_leaves_the_pre_state(vectors: list[Fixture]) -> None:
    for fixture in vectors:
        if fixture.expected.verdict is not None:
            parent = Header.decode(bytes.fromhex(fixture.parent_header[2:]))
            assert fixture.expected.post_state_root == "0x" + parent.state_root.hex()


def test_entries_and_child_tries_give_the_state_root_and_bodies_theirs(folder: Path) -> None:
    files = sorted((folder / FOLDER).iterdir())
    assert len(files) == KEPT
    for path in files:
        state = json.loads(path.read_text())["relay_state"]
        header = Header.decode(unhex(state["header"]))
        entries = [(unhex(key), unhex(value)) for key, value in state["entries"]]
        for child in state["children"]:
            root = state_root([(unhex(key), unhex(value)) for key, value in child["entries"]])
            entries.append((CHILD_STORAGE_PREFIX + unhex(child["storage_key"]), root))
        assert state_root(entries) == header.state_root
        assert ordered_root(map(unhex, state["extrinsics"])) == header.extrinsics_root
        assert (header.hash(), header.number) == (unhex(state["hash"]), state["number"])


def _flip(text: str, at: int = -1) -> str:
    digits = list(text)
    digits[at] = "0" if digits[at] != "0" else "1"
    return "".join(digits)


TAMPERED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a value of the pre-state": lambda f: f["pre_state"][0].__setitem__(
        1, _flip(f["pre_state"][0][1])
    ),
    "an entry of the pre-state left out": lambda f: f["pre_state"].pop(),
    "the relay root": lambda f: f["relay"].__setitem__(
        "storage_root", _flip(f["relay"]["storage_root"])
    ),
    "the slot": lambda f: f["relay"].__setitem__("slot_now", 0),
    "the seal": lambda f: f.__setitem__(
        "candidate", f["candidate"].replace(_seal(f), _flip(_seal(f)))
    ),
    "the verdict": lambda f: f["expected"].__setitem__("verdict", "BadSeal"),
    "the post-state": lambda f: f["expected"].__setitem__(
        "post_state_root", _flip(f["expected"]["post_state_root"])
    ),
    "a delivery": lambda f: f["expected"]["deliveries"].pop(),
    "the bytes used": lambda f: f["expected"].__setitem__("used", f["expected"]["used"] + 1),
    "the claimed root": lambda f: f["claims"].__setitem__(
        "post_state_root", _flip(f["claims"]["post_state_root"])
    ),
    "a node of the claims": lambda f: f["claims"]["proof"].pop(),
}


def _seal(fixture: dict[str, Any]) -> str:
    seal = Candidate.decode(bytes.fromhex(fixture["candidate"][2:])).header.aura_seal()
    assert seal is not None
    return seal.hex()


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_fixture_is_noticed(folder: Path, tmp_path: Path, what: str) -> None:
    content = json.loads((folder / "accepted-slots-update-1.json").read_text())
    path = tmp_path / "fixture.json"
    path.write_text(json.dumps(content))
    assert replay_fixture(read_fixture(path)) == []
    TAMPERED[what](content)
    path.write_text(json.dumps(content))
    assert replay_fixture(read_fixture(path)) != []
    result = CliRunner().invoke(pubsub, ["replay", str(path)])
    assert result.exit_code == 1
    assert "SURPRISING" in result.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version"),
        ({"candidate": "0x0"}, "candidate"),
        ({"candidate": "00"}, "candidate"),
        ({"surplus": 1}, "surplus"),
        ({"pre_state": [["0x"]]}, "pre_state.0"),
    ],
)
def test_a_fixture_that_is_none_is_named_with_its_field(
    folder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    content = json.loads((folder / "accepted-none-update-1.json").read_text()) | change
    path = tmp_path / "fixture.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FixtureError, match=message) as caught:
        read_fixture(path)
    assert str(path) in str(caught.value)


def test_a_candidate_that_does_not_decode_is_an_error_of_the_fixture(
    vectors: list[Fixture],
) -> None:
    broken = vectors[0].model_copy(update={"candidate": vectors[0].candidate[:-2]})
    with pytest.raises(FixtureError, match=vectors[0].name):
        replay_fixture(broken)


def test_the_schema_refuses_what_the_reader_refuses(vectors: list[Fixture]) -> None:
    validator = Draft202012Validator(schema())
    content = vectors[0].model_dump(mode="json")
    validator.validate(content)
    for change in ({"version": 2}, {"surplus": 1}, {"relay": {}}):
        with pytest.raises(ValidationError):
            validator.validate(content | change)
