"""What `pubsub inspect` says of everything that this program reads and writes."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.plumbing.command import TINY, invoked
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript
from support.spark_audit.audits import flip

from pubsub_emulator.emulator.fixtures import FixtureMaker, write_fixture
from pubsub_emulator.emulator.scenario.file import load_bundled, load_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.session import Session

ROOT = Path(__file__).resolve().parents[3]
SCENARIO = TINY.replace(
    "[[subscribers.collators]]", "[[subscribers.collators]]\n\n[[subscribers.collators]]"
)


def _inspect(*arguments: object) -> dict[str, Any]:
    """The document, after looking whether the pages are there as well."""
    shown = invoked("inspect", *arguments)
    assert shown.exit_code == 0, shown.output
    document = json.loads(invoked("inspect", *arguments, "--json").stdout)
    assert isinstance(document, dict)
    first = (
        document["blocks"][0]
        if "blocks" in document and isinstance(document["blocks"], list)
        else document
    )
    assert shown.stdout.startswith(f"{document['path']}: {first['kind']}\n")
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "tiny.toml").write_text(SCENARIO)
    assert invoked("run", folder / "tiny.toml", "--out", folder / "out").exit_code == 0
    assert (
        invoked(
            "audit", folder / "out/history", "--out", folder / "audit", "--engine", "python"
        ).exit_code
        == 1
    )
    return folder


def test_a_scenario_is_counted(folder: Path) -> None:
    found = _inspect(folder / "tiny.toml")
    assert (found["publishers"], found["keys"], found["subscribed_keys"]) == (1, 4, 4)
    assert found["collators_that_cheat"] == 1


def test_a_history_is_counted_from_the_folder_of_its_run_too(folder: Path) -> None:
    summary = json.loads((folder / "out/summary.json").read_text())
    found = _inspect(folder / "out")
    by_chain = {row["chain"]: row for row in found["by_chain"]}
    assert by_chain[3000]["included"] == summary["chains"]["3000"]["blocks"]
    assert by_chain[3000]["rejected"] == summary["chains"]["3000"]["refused"]
    assert found["verdicts"] == summary["verdicts"]
    assert (found["segments"], found["relay_blocks"], found["unreadable"]) == (2, 9, 0)


def test_a_block_of_a_history_matches_the_run_with_its_ledger(
    folder: Path,
) -> None:
    simulation = Simulation(load_scenario(folder / "tiny.toml"))
    records = [r for _ in range(8) for r in simulation.step().records if r.chain == 3000]
    number = next(r.candidate.header.number for r in records if r.refusal is not None)
    mine = [r for r in records if r.candidate.header.number == number]
    blocks = _inspect(folder / "out/history", "--block", f"3000:{number}")["blocks"]
    assert [block["verdict_now"] for block in blocks] == [
        "accepted" if r.refusal is None else r.refusal.verdict.value for r in mine
    ]
    assert [block["hash"] for block in blocks] == ["0x" + r.candidate.hash().hex() for r in mine]
    refused, valid = blocks[0], blocks[-1]
    assert refused["evidence"]
    assert "ledger" not in refused
    outcome = mine[-1].outcome
    assert outcome is not None
    assert valid["ledger"]["proof_bytes"] == outcome.ledger.proof_bytes == valid["proof_bytes"]
    assert len(valid["deliveries"]) == len(outcome.deliveries)
    assert len(valid["nodes"]) == len(mine[-1].candidate.inherent.proof)
    named = _inspect(folder / "out/history", "--block", f"tiny/3000:{number}")
    assert named["blocks"] == blocks


def test_a_block_that_is_not_there_is_refused(
    folder: Path, transcript: Transcript, snapshot: Snapshot
) -> None:
    shutil.copytree(folder / "out", transcript.folder / "out")
    for block in ("3000", "3000:x", "9:1", "other/3000:1", "3000:900"):
        transcript.refuse(f"pubsub inspect out --block {block}")
    proof = "pubsub_emulator/spark_audit/mainnet/moonbeam-devnode-115.json"
    transcript.run(f"pubsub import-relay-proofs {ROOT / proof} --out imported")
    transcript.refuse("pubsub inspect imported --block 0:1")
    snapshot("refused-blocks", str(transcript))


@pytest.mark.parametrize("table", ["blocks", "nodes", "deliveries", "checkpoints", "relay_headers"])
def test_every_file_of_a_history_is_looked_into(folder: Path, tmp_path: Path, table: str) -> None:
    shutil.copytree(folder / "out/history", tmp_path / "history")
    victim = next(
        path for path in sorted((tmp_path / "history").rglob("*.parquet")) if table in path.parts
    )
    flip(victim, victim.stat().st_size // 2)
    result = invoked("inspect", tmp_path, "--json")
    assert result.exit_code == 3
    [fault] = json.loads(result.stdout)["faults"]
    assert fault["path"].startswith(victim.relative_to(tmp_path / "history").as_posix())


def test_an_imported_proof_is_shown_and_its_chain_has_its_real_range(
    tmp_path: Path,
) -> None:
    proof = ROOT / "pubsub_emulator/spark_audit/mainnet/moonbeam-devnode-115.json"
    assert invoked("import-relay-proofs", proof, "--out", tmp_path / "imported").exit_code == 0
    shown = _inspect(tmp_path / "imported", "--block", "0:115")
    assert (shown["kind"], shown["number"], shown["proof_nodes"]) == (
        "imported relay proof",
        115,
        3,
    )


def test_a_file_of_a_table_is_shown_with_what_its_columns_mean(
    folder: Path, tmp_path: Path
) -> None:
    file = next((folder / "out/history/deliveries").rglob("*.parquet"))
    found = _inspect(file)
    assert (found["kind"], found["table"], found["of"]) == (
        "Parquet file",
        "deliveries",
        "a history",
    )
    assert found["rows"] == pq.read_metadata(file).num_rows
    assert {each["name"]: each["means"] for each in found["columns"]}["key"] == "published key"
    assert found["first_rows"][0]["chain"] == 3000
    part = next((folder / "audit/tables/chains").glob("*.parquet"))
    assert (_inspect(part)["table"], _inspect(part)["of"]) == ("chains", "an audit")
    assert "rows of the table" in invoked("inspect", part).stdout
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(file.read_bytes()[:-9])
    result = invoked("inspect", cut)
    assert isinstance(result.exception, InputError)
    assert "begins like a Parquet file but cannot be read" in str(result.exception)


def test_what_is_not_readable_is_lines_that_fit_any_screen(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "out/history", tmp_path / "history")
    victim = next((tmp_path / "history/nodes").rglob("*.parquet"))
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-9])
    place = victim.relative_to(tmp_path / "history").as_posix()
    assert f"  {place}: the file has" in invoked("inspect", tmp_path).stdout
    again = ("audit", tmp_path / "history", "--out", tmp_path / "audit", "--engine", "python")
    said = invoked(*again)
    assert said.exit_code == 5
    assert f"  {place}: the file has" in said.stdout
    assert re.search(r"\d+ of \d+ candidates judged", said.stdout)
    command = re.search(r"run `.*(audit .* --out .*)` again", said.stdout)
    assert command is not None
    assert command.group(1).split() == [
        "audit",
        str(tmp_path / "history"),
        "--out",
        str(tmp_path / "audit"),
    ]
    victim.write_bytes(whole)
    assert invoked(*again).exit_code == 1, "a whole copy in its place repairs it"


def test_an_audit_is_counted(folder: Path) -> None:
    summary = json.loads((folder / "out/summary.json").read_text())
    found = _inspect(folder / "audit")
    assert found["codes"]["OmittedBelowBudget"] == summary["verdicts"]["OmittedBelowBudget"]
    assert found["exit_code"] == 1


def test_fixtures_alone_and_in_a_folder(tmp_path: Path) -> None:
    simulation = Simulation(load_bundled("fixtures"))
    maker = FixtureMaker()
    simulation.network.observe(maker)
    for _ in range(6):
        simulation.step()
    fixtures = list(maker.fixtures)[:4]
    for fixture in fixtures:
        write_fixture(fixture, tmp_path / f"{fixture.name}.json")
    assert _inspect(tmp_path)["fixtures"] == len(fixtures)
    for fixture in fixtures:
        found = _inspect(tmp_path / f"{fixture.name}.json")
        assert found["kind"] == "fixture"
        assert (
            found["verdict_now"]
            == found["verdict_recorded"]
            == (fixture.expected.verdict or "accepted")
        )


def test_a_case_a_relay_proof_and_a_session(tmp_path: Path) -> None:
    case = _inspect(ROOT / "pubsub_emulator/laboratory/corpus/add-cached-node.json")
    assert (case["strategies"], case["found"]) == (["add-cached-node"], "UnusedNodes")
    proof = _inspect(ROOT / "pubsub_emulator/spark_audit/mainnet/moonbeam-devnode-115.json")
    assert (proof["number"], proof["proof_nodes"]) == (115, 3)
    session = Session.of(load_bundled("fixtures"))
    for line in ("step 2", f"write {tmp_path / 's.json'}"):
        list(session.execute(line))
    assert _inspect(tmp_path / "s.json")["commands"] == ["step 2"]


def test_what_nobody_wrote_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "empty").mkdir()
    for name in ("a.json", "b.json", "empty"):
        result = invoked("inspect", tmp_path / name)
        assert isinstance(result.exception, PubsubError)
        assert str(result.exception).startswith(f"{tmp_path / name}: ")
