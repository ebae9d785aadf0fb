"""Histories of format 1 are brought up to the present one; what is damaged is refused whole (AU-15)."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.audits import drop_a_node, write_history

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history.manifest import CommitError, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.migrate import migrate
from pubsub_emulator.spark_audit.history.reader import History


def _outdate(history: Path) -> None:
    """Its manifests as 0.1.0 wrote them: format 1, none names another."""
    for path in sorted((history / "_commits").iterdir()):
        body = json.loads(path.read_bytes())
        del body["previous"], body["digest"]
        body["format"] = 1
        digest = digest_of(canonical_json(body))
        path.unlink()
        name = f"{body['network']}-{body['segment']:08d}-{digest[:16]}.json"
        path.with_name(name).write_bytes(canonical_json({**body, "digest": digest}))


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, str | None]:
    """A history of two networks in format 1, and the head that it had before."""
    path = write_history(tmp_path / "history", 6, cheats={3: drop_a_node})
    write_history(path, 3, name="other")
    head = History.open(path).head
    _outdate(path)
    return path, head


def test_au15_a_migrated_history_is_what_it_would_have_been(old: tuple[Path, str | None], tmp_path: Path) -> None:
    path, head = old
    before = {file: file.read_bytes() for file in path.rglob("*.parquet")}
    done = migrate(path)
    assert (done.manifests, done.head) == (done.segments, head)
    assert History.open(path).head == head
    assert {file: file.read_bytes() for file in path.rglob("*.parquet")} == before
    assert audit(path, tmp_path / "audit", engine="python", head=head).codes["OmittedBelowBudget"] == 1
    assert migrate(path).manifests == 0


def test_au15_an_old_history_is_told_what_to_do(old: tuple[Path, str | None]) -> None:
    faults = History.open(old[0]).faults
    assert {fault.error for fault in faults} == {
        "manifest format 1 is not known, only format 2 is: `pubsub migrate` brings it up to date"
    }


def test_au6_a_migration_that_was_ended_goes_on(old: tuple[Path, str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    path, head = old
    from pubsub_emulator.spark_audit.history.storage import LocalStore  # noqa: PLC0415  # this test breaks it

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
    damaged = next(path.glob("blocks/*/*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    manifests = sorted((path / "_commits").iterdir())
    with pytest.raises(CommitError, match=r"blocks/.*parquet: the file has .* bytes.*; nothing was migrated"):
        migrate(path)
    assert sorted((path / "_commits").iterdir()) == manifests


def test_au11_a_history_with_a_hole_is_not_migrated(old: tuple[Path, str | None]) -> None:
    path, _ = old
    min((path / "_commits").glob("dev-*")).unlink()
    with pytest.raises(CommitError, match="segment 0 of dev is missing"):
        migrate(path)


def test_au15_migrate_from_the_command_line(old: tuple[Path, str | None], tmp_path: Path) -> None:
    path, head = old
    run = CliRunner().invoke(pubsub, ["migrate", str(path), "--json"])
    assert run.exit_code == 0
    assert json.loads(run.stdout)["head"] == f"0x{head}"
    again = CliRunner().invoke(pubsub, ["migrate", str(path)])
    assert "nothing to do" in again.output
    (tmp_path / "empty").mkdir()
    assert CliRunner().invoke(pubsub, ["migrate", str(tmp_path / "empty")]).exit_code != 0


def test_a_migration_tells_how_far_it_is_and_that_it_goes_on(old: tuple[Path, str | None]) -> None:
    told: list[tuple[int, int]] = []
    files = len(list(old[0].rglob("*.parquet")))

    def interrupt(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(old[0], interrupt)
    assert told == [(0, files), (1, files), (2, files)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pubsub_emulator.cli.commands.migrate.run.migrate", lambda path, _advance: migrate(path, interrupt)
        )
        interrupted = CliRunner().invoke(pubsub, ["migrate", str(old[0])])
    assert "the same command goes on" in interrupted.output
    assert migrate(old[0]).head == old[1]
