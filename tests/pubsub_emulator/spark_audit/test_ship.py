"""What is brought to a cluster is all that the program imports, and the same bytes whenever it is
packed (AU-8).
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from pubsub_emulator.spark_audit.spark import ship
from pubsub_emulator.spark_audit.spark.ship import (
    PACKAGE,
    REQUIRED,
    ShipError,
    build_environment,
    required_distributions,
)


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the two that weigh most: packing is the same for all."""
    monkeypatch.setattr(
        ship,
        "REQUIRED",
        tuple(name for name in REQUIRED if name not in {"obstore", "pyarrow", "pycryptodome"}),
    )


@pytest.mark.usefixtures("light")
def test_an_environment_is_the_same_bytes_whenever_it_is_packed(tmp_path: Path) -> None:
    first, second = (
        build_environment(tmp_path / name) for name in ("first.tar.gz", "second.tar.gz")
    )
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        names = archive.getnames()
    assert {PACKAGE, "interchain_events", "click", "rich", "sortedcontainers", "xxhash"} <= {
        name.split("/")[0] for name in names
    }
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(("/", "..")) or "__pycache__" in name]


SIGN_AND_VERIFY = """
from pubsub_emulator.primitives.signatures import Scheme, account_of, verify
for scheme, key_size, signature_size in ((Scheme.SR25519, 32, 64), (Scheme.ECDSA, 33, 65)):
    account = account_of(scheme, bytes(key_size))
    print(verify(scheme, bytes(signature_size), b"message", account))
"""
"""Both signatures are wrong; a missing library would be an error instead."""


@pytest.mark.usefixtures("light")
def test_an_environment_verifies_signatures_in_every_scheme(tmp_path: Path) -> None:
    """Otherwise workers would set aside each segment that has signed extrinsics."""
    with tarfile.open(build_environment(tmp_path / "environment.tar.gz")) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(tmp_path / "unpacked")  # noqa: S202  # made by this test
    alone = [
        sys.executable,
        "-S",
        "-c",
        SIGN_AND_VERIFY,
    ]  # without the packages of this environment
    variables = {"PYTHONPATH": str(tmp_path / "unpacked")}
    done = subprocess.run(
        alone, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["False", "False"], done.stderr


DECODE = """
from pubsub_emulator.extension import extensions
for extension in extensions():
    print(extension.distribution, *__import__(extension.relay_pallets, fromlist=["x"]).PALLETS)
"""


def test_workers_find_the_installed_extensions_and_their_pallets(tmp_path: Path) -> None:
    """Otherwise a worker would not decode events that the driver decodes."""
    archive = ship.build_archive(tmp_path / "sources.zip")
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    assert len(names) == len(set(names))
    assert not [name for name in names if {"build", "man"} & set(name.split("/"))]
    # The packages of this environment, without the distributions of this checkout in it.
    home = tmp_path / "packages"
    home.mkdir()
    for name in {"click", "pydantic", "xxhash"} | set(ship.required_distributions()):
        for file in {entry.parts[0] for entry in distribution(name).files or ()} - {".."}:
            target = home / file
            if not target.exists():
                target.symlink_to(Path(str(distribution(name).locate_file(file))))
    done = subprocess.run(
        [sys.executable, "-S", "-c", DECODE],
        env={"PYTHONPATH": os.pathsep.join((str(archive), str(home)))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("interchain-events "), done.stderr


def test_what_is_required_in_turn_is_shipped_too() -> None:
    names = required_distributions()
    assert {"pydantic-core", "typing-extensions", "annotated-types", "pygments"} <= set(names)
    assert not {"pyspark", "pytest", "mypy"} & set(names)


def test_what_is_not_installed_cannot_be_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "REQUIRED", ("no-such-distribution",))
    with pytest.raises(ShipError, match="no-such-distribution is not installed here"):
        required_distributions()


def test_what_lies_beside_sources_is_neither_shipped_nor_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / PACKAGE
    (package / ".tool").mkdir(parents=True)
    for name in ("code.py", "code.pyc", ".env", ".tool/cache.py"):
        (package / name).write_text("secret")
    os.mkfifo(package / "pipe.py")
    (package / "gone.py").symlink_to(tmp_path / "nowhere")
    (package / "build").mkdir()
    (package / "build" / "lib.py").write_text("made")
    monkeypatch.setattr(ship, "source_root", lambda: tmp_path)
    monkeypatch.setattr(ship, "extensions", tuple)
    with zipfile.ZipFile(ship.build_archive(tmp_path / "out.zip")) as archive:
        assert archive.namelist() == [f"{PACKAGE}/code.py"]
