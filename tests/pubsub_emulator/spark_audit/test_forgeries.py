"""No value of a history is altered unnoticed, whoever makes the digests good again, unless it is a
claim (AU-11).
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.spark_audit.audits import SUBSCRIBER, all_rows, drop_a_node, flip, write_history
from support.spark_audit.forgeries import CLAIMS, IMPORTED_CLAIMS, Forger
from support.spark_audit.history_forgery import Segment, load, rewrite_manifests, store

from pubsub_emulator.spark_audit.audit.ledger import LEDGER
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS, HISTORY_TABLES
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.judge.results import REPORT, RESULT_TABLES, ResultError, Results

ROOT = Path(__file__).resolve().parents[3]


COLUMNS = [
    f"{table.name}.{column.name}"
    for table in HISTORY_TABLES.values()
    if table.name not in CLAIMS
    for column in table.wider.columns
]
IMPORTED_COLUMNS = [
    name for name in COLUMNS if name.startswith(("relay_headers.", "blocks.", "nodes."))
]


def test_the_tables_of_forgeries_in_the_docs_are_these() -> None:
    page = (ROOT / "docs" / "forgeries.md").read_text(encoding="utf-8")
    values = page[page.index("## Values") : page.index("## Parts")]
    rows = [line for line in values.splitlines() if line.startswith("| `")]
    claims = (COLUMNS, CLAIMS), (IMPORTED_COLUMNS, IMPORTED_CLAIMS)
    assert rows == [
        f"| `{name}` | {why[name]} |" for columns, why in claims for name in columns if name in why
    ]
    named = re.findall(r"`(\w+)`", values.partition("every column of ")[2].partition(", except")[0])
    assert named == list(dict.fromkeys(name.partition(".")[0] for name in COLUMNS))
    assert set(CLAIMS) <= {*COLUMNS, *HISTORY_TABLES}


@pytest.fixture(scope="module")
def forgers(tmp_path_factory: pytest.TempPathFactory) -> list[Forger]:
    """Of recorded rows, and of imported ones."""
    return [
        Forger(tmp_path_factory.mktemp("forger"), imported=imported) for imported in (False, True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imported", "name"), [(0, name) for name in COLUMNS] + [(1, name) for name in IMPORTED_COLUMNS]
)
def test_no_forgery_of_a_value_passes_unless_it_is_a_claim(
    forgers: list[Forger], imported: int, name: str
) -> None:
    forgeries = list(forgers[imported].forgeries(frozenset({name})))
    assert forgeries
    for forgery in forgeries:
        outcome = forgers[imported].outcome(forgery)
        assert outcome == "detected" or (
            outcome == "passes" and forgery.may_pass(forgers[imported].claims)
        ), f"{forgery.name} {forgery.tag}: {outcome}"


# Whole parts


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "history"
    return write_history(path, 9, segment_length=3, subscribers=2, cheats={5: drop_a_node})


@pytest.fixture(scope="module")
def whole(pristine: Path) -> AuditResult:
    return _audit(pristine)


def _audit(history: Path, **options: Any) -> AuditResult:
    return audit(history, history.with_name("out"), engine="python", **options)


def _without_table(name: str) -> Callable[[list[Segment]], list[Segment]]:
    def change(segments: list[Segment]) -> list[Segment]:
        for each in segments:
            each.parts = {place: rows for place, rows in each.parts.items() if place[0] != name}
        return segments

    return change


def _without_chain(segments: list[Segment]) -> list[Segment]:
    for each in segments:
        each.parts = {place: rows for place, rows in each.parts.items() if place[1] != SUBSCRIBER}
    return segments


def _without_one(table: str) -> Callable[[list[Segment]], list[Segment]]:
    def change(segments: list[Segment]) -> list[Segment]:
        del segments[1].parts[table, None if (table, None) in segments[1].parts else SUBSCRIBER]
        return segments

    return change


def _swapped(segments: list[Segment]) -> list[Segment]:
    place = "blocks", SUBSCRIBER
    first, second = segments[0].parts, segments[1].parts
    first[place], second[place] = second[place], first[place]
    return segments


PARTS: dict[str, Callable[[list[Segment]], list[Segment]]] = {
    "first segment": lambda segments: segments[1:],
    "middle segment": lambda segments: [segments[0], segments[2]],
    "a chain's files": _without_chain,
    "a chain's blocks in one segment": _without_one("blocks"),
    "a chain's checkpoints in one segment": _without_one("checkpoints"),
    "a chain's callbacks in one segment": _without_one("deliveries"),
    "relay headers of one segment": _without_one("relay_headers"),
    "nodes of one segment": _without_one("nodes"),
    "blocks of two segments swapped": _swapped,
    **{
        f"table {name}": _without_table(name)
        for name in (
            "relay_headers",
            "authorities",
            "subscriptions",
            "checkpoints",
            "blocks",
            "deliveries",
            "nodes",
        )
    },
}
"""What is left out of, or moved in, a history whose digests are then made good."""


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_left_out_is_noticed_and_accuses_nobody(
    pristine: Path, whole: AuditResult, tmp_path: Path, part: str
) -> None:
    result = _audit(store(PARTS[part](load(pristine)), tmp_path / "history"))
    assert result.exit_code in {3, 5}, result.codes
    assert "not verified" in {row["status"] for row in result.chains}
    harmless = {*whole.codes, "MissingSegment", "UntrustedStart"}
    assert set(result.codes) <= harmless, "nobody is accused of what is missing"


@pytest.mark.parametrize(
    "part", ["last segment", "every refused candidate", "a chain, manifests and all"]
)
def test_a_consistently_shorter_history_is_noticed_by_whoever_knows_the_head(
    pristine: Path, tmp_path: Path, part: str
) -> None:
    """AU-13: without the head a forger who leaves things out of everything is believed; the report
    says so.
    """
    segments = load(pristine)
    if part == "last segment":
        segments = segments[:-1]
    elif part == "every refused candidate":
        _erase_refused(segments)
    else:
        for each in _without_chain(segments):
            del each.positions[SUBSCRIBER]
            for place in ("authorities", "subscriptions"):
                rows = each.parts.get((place, None), [])
                each.parts[place, None] = [row for row in rows if row["chain"] != SUBSCRIBER]
    forged = store(segments, tmp_path / "history")
    head = History.open(pristine).head
    believed = _audit(forged)
    assert "as the history itself says" in believed.report["complete_up_to"]
    with pytest.raises(AuditFailed, match="its head is") as failure:
        _audit(forged, head=head)
    assert failure.value.exit_code == 3
    assert _audit(pristine, head=f"0x{head}").head == head


def _erase_refused(segments: list[Segment]) -> None:
    gone: dict[int, int] = {}
    for each in segments:
        for (table, chain), rows in each.parts.items():
            if table == "checkpoints" and chain is not None:
                for row in rows:
                    row["position"] -= gone.get(chain, 0) if row["segment"] == each.segment else 0
        for (table, chain), rows in list(each.parts.items()):
            if table != "blocks" or chain is None:
                continue
            moved, kept = {}, []
            for row in sorted(rows, key=lambda row: row["position"]):
                if row["status"] == "rejected":
                    gone[chain] = gone.get(chain, 0) + 1
                    continue
                moved[row["position"]] = row["position"] - gone.get(chain, 0)
                kept.append({**row, "position": moved[row["position"]]})
            each.parts[table, chain] = kept
            for row in each.parts.get(("deliveries", chain), []):
                row["position"] = moved[row["position"]]
            for row in each.parts.get(("checkpoints", chain), []):
                row["position"] -= gone.get(chain, 0) if row["segment"] > each.segment else 0
            each.positions[chain] -= gone.get(chain, 0)


def test_a_manifest_repeated_under_another_name_is_a_fault_and_counts_once(
    pristine: Path, whole: AuditResult, tmp_path: Path
) -> None:
    history = shutil.copytree(pristine, tmp_path / "history")
    path = sorted((history / COMMITS).glob("*.json"))[1]
    shutil.copy(
        path, path.with_name(f"{path.stem[:-1]}{'0' if path.stem[-1] != '0' else '1'}.json")
    )
    result = _audit(history)
    assert result.exit_code in {3, 5}
    assert result.codes == whole.codes
    found = [row["error"] for row in result.results.rows(schema.READ_ERRORS)]
    assert found == [f"the manifest's name does not match its content, which is {path.name}"]


# Results


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        ("tables/block_measures/part-*.parquet", "gone"),
        ("tables/publisher_measures/part-*.parquet", "shorter"),
        ("tables/findings/part-*.parquet", "another's"),
        ("tables/summaries/part-*.parquet", "gone"),
        ("tables/chains/part-*.parquet", "shorter"),
        ("chains/*/*/state.json-*.z", "another's"),
        ("chains/*/*/state.json-*.z", "gone"),
        ("ledger/*/*.z", "shorter"),
    ],
)
def test_an_altered_result_is_made_again_and_never_taken_for_empty(
    pristine: Path, whole: AuditResult, tmp_path: Path, pattern: str, how: str
) -> None:
    out = shutil.copytree(whole.out, tmp_path / "out")
    path = max(out.glob(pattern))
    if how == "gone":
        path.unlink()
    elif how == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        flip(path, path.stat().st_size // 2)
    if path.suffix == ".parquet":
        with pytest.raises(ResultError):
            list(Results.open(out).rows(RESULT_TABLES[path.parent.name]))
    again = audit(pristine, out, engine="python")
    assert (again.digest, again.codes) == (whole.digest, whole.codes)
    assert all_rows(again) == all_rows(whole), "none is taken away"


@pytest.mark.parametrize("name", [REPORT, LEDGER])
def test_a_report_or_ledger_that_is_damaged_is_written_anew(
    pristine: Path, whole: AuditResult, tmp_path: Path, name: str
) -> None:
    out = shutil.copytree(whole.out, tmp_path / "out")
    for content in (b"", b'{"receipts": 1}', b"\xff"):
        (out / name).write_bytes(content)
        assert audit(pristine, out, engine="python").digest == whole.digest


# Manifests of strangers (AU-5)


def _named(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        body.update(values)
        for file in body["files"]:
            file.update({name: value for name, value in values.items() if name in file})

    return change


def _in_files(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        for file in body["files"]:
            file.update(values)

    return change


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a network that climbs": (_named(network="x/../../../escaped/y"), "a network's name is"),
    "a network that is a number": (_named(network=7), "network is 7"),
    "a long network": (_named(network="x" * 150), "a network's name is"),
    "a segment that is text": (_named(segment="1"), "segment is '1'"),
    "a huge segment": (_named(segment=10**12), "segment is 1000000000000"),
    "a negative segment": (_named(segment=-1), "segment is -1"),
    "a chain that is text": (_in_files(chain="2000"), "has the chain '2000'"),
    "a path that climbs": (_in_files(path="../../etc/passwd"), "has the path '../../etc/passwd'"),
    "an absolute path": (_in_files(path="/etc/passwd"), "has the path '/etc/passwd'"),
    "a size that is text": (_in_files(size="9"), "size is '9'"),
    "a negative size": (_in_files(size=-9), "size is -9"),
    "rows without end": (_in_files(rows=2**70), "rows is"),
    "a version that is true": (_in_files(version=True), "version is True"),
    "row groups that are none": (_in_files(row_groups=None), "row_groups is not a list"),
    "row groups beyond the file": (
        _in_files(
            row_groups=[
                {"offset": 2**40, "length": 1, "digest": "0" * 64, "chain": None, "rows": 1}
            ]
        ),
        "offset is",
    ),
    "a digest that is none": (_in_files(frame="xyz"), "frame is 'xyz'"),
    "positions that are none": (_named(next_positions=[1]), "next_positions is not an object"),
    "a position that is text": (_named(next_positions={"2000": "1"}), "2000 is '1'"),
    "a chain without bound": (
        _named(next_positions={"9" * 40: 1}),
        "next_positions names the chain",
    ),
    "a surplus field": (_named(surplus=1), "the manifest: 'surplus' is missing or unknown"),
    "a file named twice": (
        lambda body: body["files"].append(body["files"][0]),
        "a file is named twice",
    ),
    "two files for one table": (
        lambda body: body["files"].append(
            {**body["files"][0], "path": body["files"][0]["path"][:-8] + "x.parquet"}
        ),
        "a table has two files",
    ),
    "a table that is not known": (
        lambda body: body["files"][0].update(table="riddles"),
        "a table named 'riddles' is not",
    ),
    "no files": (lambda body: body.pop("files"), "the manifest: 'files' is missing or unknown"),
    "files that are text": (lambda body: body.update(files="all"), "files is not a list"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_strangers_manifest_is_a_fault(pristine: Path, tmp_path: Path, name: str) -> None:
    change, reason = MANIFESTS[name]
    history = shutil.copytree(pristine, tmp_path / "history")
    rewrite_manifests(history, change)
    assert any(reason in fault.error for fault in History.open(history).faults)


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name.endswith(" that climbs")])
def test_a_strangers_manifest_writes_nothing_elsewhere_and_ends_no_audit(
    pristine: Path, tmp_path: Path, name: str
) -> None:
    history = shutil.copytree(pristine, tmp_path / "place" / "history")
    before = {path for path in tmp_path.rglob("*") if history not in path.parents}
    rewrite_manifests(history, MANIFESTS[name][0])
    assert audit(history, tmp_path / "place" / "out", engine="python").exit_code in {3, 5}
    new = {path for path in tmp_path.rglob("*") if history not in path.parents} - before
    assert all((tmp_path / "place" / "out") in (path, *path.parents) for path in new)


def test_work_grows_with_the_data_and_not_with_a_manifests_numbers(
    tmp_path: Path,
) -> None:
    """Two small manifests a billion segments apart make two tasks, and a fault."""
    segments = load(write_history(tmp_path / "base", 6, segment_length=3))
    segments[1].segment = 4_000_000_000
    for rows in segments[1].parts.values():
        for row in rows:
            row.update({"segment": row["segment"] + 3_999_999_999} if "segment" in row else {})
    result = _audit(store(segments, tmp_path / "far" / "history"))
    assert result.units_judged == 2
    assert result.exit_code == 3


def test_a_link_out_of_the_history_is_not_followed(pristine: Path, tmp_path: Path) -> None:
    history = shutil.copytree(pristine, tmp_path / "history")
    path = history / History.open(history).files(schema.BLOCKS, None, SUBSCRIBER, 1)[0].path
    outside = tmp_path / "elsewhere.parquet"
    path.rename(outside)
    path.symlink_to(outside)
    result = _audit(history)
    errors = [row["error"] for row in result.results.rows(schema.READ_ERRORS)]
    assert any("leads out of" in error for error in errors)
