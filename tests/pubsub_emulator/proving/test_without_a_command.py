"""A program prices requests and opens proofs without the command line."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.node.node_data import PRICES, hexed
from support.plumbing.command import TINY

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.proving.costs import ProofPlan, costs_of
from pubsub_emulator.proving.documents import document, proof_file
from pubsub_emulator.proving.opening import Wanted, open_proofs
from pubsub_emulator.proving.opening import document as opened_document
from pubsub_emulator.proving.sources import blocks_of
from pubsub_emulator.proving.tables import notes
from pubsub_emulator.proving.verify import verify_file

DATA = Path(__file__).resolve().parents[3] / "examples" / "node_data"
SLOT = "Babe.CurrentSlot"
ELSEWHERE = "System.Foo"
"""A key that the relay chain does not have, and whose path no static key needs."""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_costs_are_those_of_the_command(scenario: Path) -> None:
    costs = costs_of(ProofPlan(str(scenario), top=[SLOT], para=3000, blocks=blocks_of("3")))
    command = ["prove", str(scenario), "--top", SLOT, "--para", "3000", "--blocks", "3", "--json"]
    shown = CliRunner().invoke(pubsub, command)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == document(costs)
    assert [block.number for block in costs.blocks] == [6, 7, 8]


def test_absent_keys_cost_the_block_only_what_static_keys_do_not_need(scenario: Path) -> None:
    present = [SLOT, "Paras.Heads(3000)"]
    absent_static = "Paras.UpgradeGoAheadSignal(3000)"
    for absent in (["Babe.EpochIndex"], [absent_static], [ELSEWHERE, absent_static]):
        with_absent = costs_of(ProofPlan(str(scenario), top=[*present, *absent], para=3000)).newest
        without = costs_of(ProofPlan(str(scenario), top=present, para=3000)).newest
        assert with_absent.absent_bytes == with_absent.request.size - without.request.size
        more = with_absent.whole.size - without.whole.size
        assert with_absent.absent_block_bytes == more
        assert (more > 0) == (ELSEWHERE in absent)


def test_the_note_about_absent_keys_has_the_request_and_the_block(scenario: Path) -> None:
    absent = "Paras.UpgradeGoAheadSignal(3000)"
    alone = costs_of(ProofPlan(str(scenario), top=[SLOT, absent]))
    assert alone.newest.absent_block_bytes is None
    assert re.match(
        r"1 of 2 keys is absent\. Without it, the request would be [1-9]\d* bytes smaller\.",
        notes(alone)[0],
    )
    in_block = costs_of(ProofPlan(str(scenario), top=[SLOT, absent], para=3000))
    assert re.match(
        r"1 of 2 keys is absent\. Without it, the request alone would be [1-9]\d* bytes smaller,"
        r" and the block 0 bytes smaller\.",
        notes(in_block)[0],
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Paras.Haeds(1000)", r"did you mean Paras\.Heads\?"),
        ("Balances.Locks(1000)", "give --metadata"),
    ],
)
def test_a_map_that_is_not_known_is_answered_with_a_similar_one(
    scenario: Path, name: str, hint: str
) -> None:
    with pytest.raises(InputError, match=hint):
        costs_of(ProofPlan(str(scenario), top=[name]))


def test_a_proof_is_written_and_verified(scenario: Path, tmp_path: Path) -> None:
    made = proof_file(costs_of(ProofPlan(str(scenario), top=[SLOT])))
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    verified = verify_file(path, Hash(bytes.fromhex(str(made["root"])[2:])))
    assert verified.is_exact
    assert [(key.name, key.value is None) for key in verified.keys] == [(SLOT, False)]
    with pytest.raises(InputError, match="not every key is proven"):
        verify_file(path, Hash(bytes(32)))


def test_a_source_that_is_not_there_raises_an_error() -> None:
    with pytest.raises((InputError, ClientError), match=r"no-such\.json"):
        costs_of(ProofPlan("no-such.json", top=[SLOT]))


@pytest.mark.parametrize(
    ("request_text", "said"),
    [
        (None, "the request has no keys"),
        ("0x", "not a RelayProofRequest"),
    ],
)
def test_a_request_that_cannot_be_priced_raises_an_error(
    scenario: Path, request_text: str | None, said: str
) -> None:
    # The scenario is run before the request is read, so it is a small one.
    with pytest.raises((InputError, ClientError), match=said):
        costs_of(ProofPlan(str(scenario), request=request_text))


@pytest.mark.parametrize("keys", [PRICES, PRICES[:1]])
def test_a_proof_of_a_node_is_opened_as_the_command_opens_it(keys: Sequence[bytes]) -> None:
    files = [DATA / "child-read-proof.json", DATA / "header.json"]
    named = [hexed(key) for key in keys]
    opened = open_proofs(files, Wanted(child="1000", keys=named))
    command = ["open-proof", *map(str, files), "--child", "1000", "--json"]
    for name in named:
        command += ["--key", name]
    shown = CliRunner().invoke(pubsub, command)
    assert json.loads(shown.stdout) == opened_document(opened)
    assert any(each.has_unread for each in opened) == (shown.exit_code == 1) == (len(keys) == 1)
