"""Histories of older formats are brought up to the present one; what is damaged is refused whole
(AU-15).
"""

import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.spark_audit.audits import drop_a_node, write_history
from support.spark_audit.history_forgery import Segment, load, store

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import commit, manifest, schema
from pubsub_emulator.spark_audit.history.commit import encode_parquet
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    HISTORY_TABLES,
    CommitError,
    canonical_json,
    digest_of,
)
from pubsub_emulator.spark_audit.history.migrate import migrate
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.judge.results import Results


def _of_then(table: schema.Table, rows: list[Row]) -> schema.Table:
    """The table with unsigned integers, if it had all columns of these rows then."""
    former = table.former
    if former is None or not {column.name for column in former.wider.columns}.issuperset(rows[0]):
        return table
    return former


def _outdate(history: Path, version: int) -> None:
    """Its segments as an earlier version wrote them: a file for each chain, unsigned integers where
    all columns had them, a former manifest.
    """
    opened = History.open(history)
    rows = {
        entry: list(opened.rows([entry], [])) for commit in opened.commits for entry in commit.files
    }
    for folder in HISTORY_TABLES:
        shutil.rmtree(history / folder, ignore_errors=True)
    last: dict[str, str] = {}
    for found in opened.commits:
        files = []
        for entry in found.files:
            table = _of_then(HISTORY_TABLES[entry.table], rows[entry])
            data = encode_parquet(table, rows[entry], 256)
            path = (
                history
                / manifest._former_folder(table, entry.network, entry.chain, entry.segment)
                / "00-f.parquet"
            )
            path = path.with_name(f"{entry.segment:08d}-{digest_of(data)[:16]}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            metadata = pq.read_metadata(path)
            groups = [
                commit._extent(data, metadata, at, None) for at in range(metadata.num_row_groups)
            ]
            outside = manifest.outside(
                len(data), [(group.offset, group.length) for group in groups]
            )
            body = {
                **{
                    name: getattr(entry, name)
                    for name in ("table", "network", "chain", "segment", "rows")
                },
                "version": table.for_rows(rows[entry]).version,
                "path": path.relative_to(history).as_posix(),
                "size": len(data),
                "frame": digest_of(commit.read_stretches(io.BytesIO(data), outside)),
                "row_groups": [
                    {name: getattr(each, name) for name in ("offset", "length", "digest")}
                    for each in groups
                ],
            }
            files.append(body)
        place = {"network": found.network, "segment": found.segment}
        positions = {str(chain): found.next_positions[chain] for chain in found.next_positions}
        whole: dict[str, Any] = {
            "format": version,
            **place,
            "files": files,
            "next_positions": positions,
        }
        if version == manifest.BY_CHAIN:
            whole["previous"] = last.get(found.network)
        last[found.network] = digest = digest_of(canonical_json(whole))
        (history / COMMITS / found.name).unlink()
        name = manifest.manifest_name(found.network, found.segment, digest)
        (history / COMMITS / name).write_bytes(canonical_json({**whole, "digest": digest}))


def _commit(history: Path, segment: Segment) -> None:
    """Add a segment as a writer of the present format does."""
    parts = [
        commit.HistoryPart(HISTORY_TABLES[name], rows, f"{segment.segment:08d}", chain)
        for (name, chain), rows in segment.parts.items()
    ]
    commit.write_commit(history, segment.network, segment.segment, parts, segment.positions)


def _former_rows(segment: Segment) -> Segment:
    """The segment without the columns that its tables did not have with unsigned integers."""
    for (name, _), rows in segment.parts.items():
        table = HISTORY_TABLES[name]
        known = {column.name for column in (table.former or table).wider.columns}
        for row in rows:
            for column in row.keys() - known:
                del row[column]
    return segment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "history"
    write_history(path, 6, cheats={3: drop_a_node})
    return write_history(path, 3, name="other")


@pytest.fixture
def two(made: Path, tmp_path: Path) -> tuple[Path, str | None]:
    """A history of two networks, and its head."""
    return shutil.copytree(made, tmp_path / "history"), History.open(made).head


@pytest.fixture
def old(two: tuple[Path, str | None]) -> tuple[Path, str | None]:
    """The same in an older format."""
    _outdate(two[0], manifest.BY_CHAIN)
    return two


@pytest.mark.parametrize("version", [manifest.UNCHAINED, manifest.BY_CHAIN])
def test_au15_a_migrated_history_is_what_it_would_have_been(
    made: Path, two: tuple[Path, str | None], tmp_path: Path, version: int
) -> None:
    path, head = two
    _outdate(path, version)
    before = len(list(path.rglob("*.parquet")))
    done = migrate(path)
    assert (done.manifests, done.head) == (done.segments, head)
    files, due = (sorted(each.relative_to(at) for each in at.rglob("*.*")) for at in (path, made))
    assert files == due
    assert len(list(path.rglob("*.parquet"))) < before
    assert (
        audit(path, tmp_path / "audit", engine="python", head=head).codes["OmittedBelowBudget"] == 1
    )
    assert migrate(path).manifests == 0


def test_au15_candidates_of_version_0_3_0_are_migrated_and_not_judged(
    made: Path, tmp_path: Path
) -> None:
    """They have none of the columns that came with the inherent of upstream."""
    path = tmp_path / "history"
    for each in load(made):
        _commit(path, _former_rows(each))
    due = shutil.copytree(path, tmp_path / "due")
    _outdate(path, manifest.BY_CHAIN)
    files = (path / "blocks").rglob("*.parquet")
    versions = {pq.read_metadata(each).metadata[b"pubsub.version"] for each in files}
    assert versions
    assert versions <= {b"2", b"3", b"4"}
    assert migrate(path).head == History.open(due).head
    found = audit(path, tmp_path / "audit", engine="python")
    assert found.digest == audit(due, tmp_path / "other", engine="python").digest
    said = [row["error"] for row in Results.open(found.out).rows(schema.READ_ERRORS)]
    assert any("no parent_head: it was written by version 0.3.0 or older" in each for each in said)


def test_au15_the_layout_of_a_history_is_in_no_digest(
    two: tuple[Path, str | None], tmp_path: Path
) -> None:
    path, _ = two
    new = audit(path, tmp_path / "new", engine="python")
    _outdate(path, manifest.BY_CHAIN)
    old = audit(path, tmp_path / "old", engine="python")
    assert (old.digest, old.codes, old.exit_code) == (new.digest, new.codes, new.exit_code)
    assert old.read_errors == 0


def test_au15_a_history_that_went_on_in_the_present_format_is_migrated_whole(
    two: tuple[Path, str | None], tmp_path: Path
) -> None:
    path, head = two
    segments = load(path)
    store(segments[:-1], tmp_path / "mixed")
    _outdate(tmp_path / "mixed", manifest.BY_CHAIN)
    _commit(tmp_path / "mixed", segments[-1])
    assert History.open(tmp_path / "mixed").faults == ()
    assert migrate(tmp_path / "mixed").head == head
    assert History.open(tmp_path / "mixed").head == head


def test_au15_an_old_history_is_told_what_to_do(two: tuple[Path, str | None]) -> None:
    _outdate(two[0], manifest.UNCHAINED)
    assert {fault.error for fault in History.open(two[0]).faults} == {
        (
            "manifest format 1 is not known, only formats 2 and 3 are:"
            " `pubsub migrate` brings it up to date"
        )
    }


def test_au6_a_migration_that_was_ended_goes_on(
    old: tuple[Path, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, head = old
    from pubsub_emulator.spark_audit.history.storage import (  # noqa: PLC0415  # this test breaks it
        LocalStore,
    )

    whole = LocalStore.remove
    removed: list[str] = []

    def remove(self: LocalStore, name: str) -> None:
        if len(removed) == 1:
            raise KeyboardInterrupt
        removed.append(name)
        whole(self, name)

    monkeypatch.setattr(LocalStore, "remove", remove)
    with pytest.raises(KeyboardInterrupt):
        migrate(path)
    monkeypatch.undo()
    assert migrate(path).head == head
    assert History.open(path).head == head


def test_au11_a_damaged_history_is_not_migrated(old: tuple[Path, str | None]) -> None:
    path, _ = old
    damaged = min(path.glob("blocks/*/*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    manifests = sorted((path / "_commits").iterdir())
    with pytest.raises(
        CommitError, match=r"blocks/.*parquet: the file has .* bytes.*; it was not migrated"
    ):
        migrate(path)
    assert set((path / "_commits").iterdir()) >= set(manifests)


def test_au11_a_history_with_a_hole_is_not_migrated(old: tuple[Path, str | None]) -> None:
    path, _ = old
    min((path / "_commits").glob("dev-*")).unlink()
    with pytest.raises(CommitError, match="segment 0 of dev is missing"):
        migrate(path)


def test_au15_migrate_from_the_command_line(old: tuple[Path, str | None], tmp_path: Path) -> None:
    path, head = old
    run = CliRunner().invoke(pubsub, ["migrate", str(path), "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["head"] == f"0x{head}"
    again = CliRunner().invoke(pubsub, ["migrate", str(path)])
    assert "nothing to do" in again.output
    (tmp_path / "empty").mkdir()
    assert CliRunner().invoke(pubsub, ["migrate", str(tmp_path / "empty")]).exit_code != 0


def test_a_migration_tells_how_far_it_is_and_that_it_goes_on(old: tuple[Path, str | None]) -> None:
    told: list[tuple[int, int]] = []
    total = len(list((old[0] / "_commits").iterdir()))

    def interrupt(done: int, total: int) -> None:
        told.append((done, total))
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(old[0], interrupt)
    assert told == [(0, total), (1, total)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pubsub_emulator.spark_audit.history.migrate.migrate",
            lambda path, _advance: migrate(path, interrupt),
        )
        interrupted = CliRunner().invoke(pubsub, ["migrate", str(old[0])])
    assert "the same command continues" in interrupted.output
    assert migrate(old[0]).head == old[1]


_EMPTY: dict[str, object] = {
    "format": 1,
    "network": "dev",
    "segment": 0,
    "files": [],
    "next_positions": {},
}
_PRESENT: dict[str, object] = {**_EMPTY, "format": 2, "previous": None}


@pytest.mark.parametrize(
    ("bodies", "complaint"),
    [
        (
            [{"segment": 2**32 - 1}],
            "segment 0 of dev is missing",
        ),  # it was counted up to in memory once
        ([{}, {"segment": 2**31}], "segment 1 of dev is missing"),
        ([{"format": True}], "format True is not known"),
        ([{**_PRESENT, "format": 2.0}], r"format 2\.0 is not known"),
        ([{"files": [[]] * 2**22}], "more than 4,194,304 values"),
        ([{"files": json.loads("[" * 70 + "]" * 70)}], "nest deeper than 64"),
        ([{"network": "../etc"}], "a network's name"),
        (
            [{"files": [{"table": "blocks", "path": "../../x.parquet"}]}],
            "a file: 'chain' is missing or unknown",
        ),
    ],
)
def test_manifests_of_a_stranger_are_refused_soon_and_nothing_is_changed(
    tmp_path: Path, bodies: list[dict[str, object]], complaint: str
) -> None:
    commits = tmp_path / "_commits"
    commits.mkdir()
    for at, changes in enumerate(bodies):
        body = {**_EMPTY, **changes}
        data = canonical_json({**body, "digest": digest_of(canonical_json(body))})
        name = f"{at}.json"
        if "previous" in body:
            name = f"dev-00000000-{digest_of(canonical_json(body))[:16]}.json"
        (commits / name).write_bytes(data)
    before = {path: path.read_bytes() for path in commits.iterdir()}
    with pytest.raises(CommitError, match=complaint):
        migrate(tmp_path)
    assert {path: path.read_bytes() for path in commits.iterdir()} == before


def test_a_link_or_pipe_among_manifests_is_neither_followed_nor_awaited(
    tmp_path: Path,
) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(canonical_json({**_EMPTY, "digest": digest_of(canonical_json(_EMPTY))}))
    commits = tmp_path / "history" / "_commits"
    commits.mkdir(parents=True)
    (commits / "a.json").symlink_to(elsewhere)
    with pytest.raises(OSError, match="leads out of"):
        migrate(tmp_path / "history")
    (commits / "a.json").unlink()
    os.mkfifo(commits / "a.json")
    with pytest.raises(CommitError, match="no history"):
        migrate(tmp_path / "history")
    assert elsewhere.exists()
