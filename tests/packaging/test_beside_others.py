"""The wheel in an environment with Ethereum's `trie`, in a project whose folders have the names of our rooms."""

import importlib.metadata
import shutil
from pathlib import Path

import pytest
from support.packaging import SCENARIO, run

ROOMS = ("runtime", "cli", "trie", "emulator", "collator", "testing", "node", "client")

NETWORK = """
import cli.main, emulator, runtime.pallet_subscriber, trie
from pubsub_emulator import Network, Trie, key_from_data
from pubsub_emulator.runtime.pallet_subscriber.plan import plan

KEY = key_from_data(b"key")
network = Network.of(publishers=[1000], subscribers={2000: {1000: [KEY]}})
network.publish(1000, KEY, b"7.42", ttl=100)
delivered = [each.value for step in network.step(4) for each in step.deliveries(2000)]
print(delivered, cli.main.MINE, emulator.MINE, runtime.pallet_subscriber.MINE, trie.MINE)
"""

TEST = """
from pubsub_emulator import key_from_data
from trie import MINE

KEY = key_from_data(b"key")

def test_a_value_arrives(pubsub_network):
    pubsub_network.publish(1000, KEY, b"7.42", ttl=100)
    [delivery] = pubsub_network.step(3)[-1].deliveries(2000)
    assert (delivery.value, MINE) == (b"7.42", "mine")
"""

BOTH_TRIES = """
from trie import HexaryTrie
from pubsub_emulator.trie import Trie
theirs, ours = HexaryTrie({}), Trie()
theirs[b"key"] = b"value"
ours.insert(b"key", b"value")
print(theirs[b"key"], ours.get(b"key"), len(theirs.root_hash), len(ours.root()))
"""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def beside(installed: Path) -> Path:
    """The programs of an environment that has the files of both distributions in one folder."""
    python = installed / "python"
    purelib = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=installed).strip())
    theirs = importlib.metadata.distribution("trie")
    for file in theirs.files or ():
        source, target = Path(str(theirs.locate_file(file))), purelib / file
        if ".." not in file.parts and source.suffix != ".pyc":
            assert not target.exists(), f"both distributions have {file}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return installed


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with packages of its own that are called as our rooms are."""
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text('MINE = "mine"\n')
    (tmp_path / "runtime" / "pallet_subscriber.py").write_text('MINE = "mine"\n')
    (tmp_path / "cli" / "main.py").write_text('MINE = "mine"\n\ndef main():\n    raise SystemExit("not yours")\n')
    (tmp_path / "short.toml").write_text(SCENARIO)
    return tmp_path


def test_both_tries_are_installed_and_each_is_its_own(beside: Path, tmp_path: Path) -> None:
    assert run(beside / "python", "-c", BOTH_TRIES, cwd=tmp_path) == "b'value' b'value' 32 32\n"


def test_a_network_runs_in_a_project_that_has_rooms_of_its_own(beside: Path, project: Path) -> None:
    (project / "network.py").write_text(NETWORK)
    assert run(beside / "python", "network.py", cwd=project) == "[b'7.42'] mine mine mine mine\n"


def test_the_plugin_serves_a_project_that_has_rooms_of_its_own(beside: Path, project: Path) -> None:
    (project / "test_mine.py").write_text(TEST)
    told = run(beside / "python", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", cwd=project)
    assert "1 passed" in told


def test_commands_run_in_a_project_that_has_rooms_of_its_own(beside: Path, project: Path) -> None:
    assert "cheats caught" in run(beside / "pubsub", "run", "short.toml", "--out", "out", cwd=project)
    module = (beside / "python", "-m", "pubsub_emulator")
    told = run(*module, "audit", "out/history", "--out", "audit", "--engine", "python", cwd=project, code=1)
    assert "OmittedBelowBudget" in told
