"""The PostgreSQL server of the tests leaves the machine as it found it, for root and for everybody
else.
"""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
from support.plumbing.postgres import WHEEL, PostgresServer, packaged_programs, running_server

START = """
import sys
from pathlib import Path
from support.plumbing.postgres import running_server

with running_server(Path(sys.argv[1])) as server:
    print(server.folder, flush=True)
"""


@pytest.fixture(scope="module")
def private_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that only its owner may enter, such as root's home, with the wheel's programs below
    it.
    """
    home = tmp_path_factory.mktemp("home")
    package = packaged_programs()
    assert package is not None
    for source in (package / "pginstall18", *package.parent.glob(f"{WHEEL}.libs")):
        shutil.copytree(source, home / "site" / source.relative_to(package.parent), symlinks=True)
    home.chmod(0o700)
    return home


def _modes(*folders: Path) -> dict[Path, int]:
    """Return the modes of the folders, of their content, and of every folder above them."""
    above = {parent for folder in folders for parent in folder.parents}
    below = {found for folder in folders for found in folder.rglob("*") if not found.is_symlink()}
    return {path: stat.S_IMODE(path.stat().st_mode) for path in {*folders, *above, *below}}


def _answers(server: PostgresServer) -> bool:
    with psycopg.connect(server.url()) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def _users() -> list[str]:
    return sorted(user.pw_name for user in pwd.getpwall())


def test_no_mode_and_no_user_changes_when_a_server_runs(private_home: Path) -> None:
    package = private_home / "site" / WHEEL
    installed = packaged_programs()
    assert installed is not None
    before = (_modes(private_home, installed), _users())
    with running_server(package) as server:
        folder = server.folder
        assert _answers(server)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        runs_as = psutil.Process(server.pid).uids().effective
        assert runs_as != 0
        assert os.geteuid() in {0, runs_as}
        assert (_modes(private_home, installed), _users()) == before
    assert (_modes(private_home, installed), _users()) == before
    assert not folder.exists()


def test_three_processes_start_servers_at_the_same_moment(private_home: Path) -> None:
    command = [sys.executable, "-c", START, str(private_home / "site" / WHEEL)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    processes = [
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert len({folder for folder, _ in said}) == 3


def test_a_server_runs_although_others_cannot_enter_the_temporary_folder(
    private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(private_home))
    with running_server() as server:
        assert _answers(server)


def test_a_missing_program_is_reported_with_its_place(tmp_path: Path) -> None:
    with (
        pytest.raises((RuntimeError, OSError), match="pginstall18"),
        running_server(tmp_path / WHEEL),
    ):
        pass
