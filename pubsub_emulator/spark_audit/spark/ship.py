"""Archives for the machines of a cluster: this program's sources alone, or everything that it imports.

sources       a zip of the project's packages, for `--py-files`; the workers have the third-party packages themselves
environment   a tar of the project's packages and of all that they import, for `--archives …#pubsub` with PYTHONPATH
              `pubsub`; the workers need a Python of the same version and platform, and nothing else

Both hold sources of the project only, so they run whether or not the packages here are compiled.
"""

import gzip
import io
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final

import pubsub_emulator
from pubsub_emulator.primitives.errors import PubsubError

PACKAGE: Final = "pubsub_emulator"
REQUIRED: Final = ("click", "cryptography", "pyarrow", "pycryptodome", "pydantic", "rich", "sortedcontainers", "xxhash")
"""Distributions that the packages import on a driver or a worker; Spark and its Java are the cluster's."""

MOUNT: Final = "pubsub"
"""The name that an environment is unpacked under: what PYTHONPATH says on the workers."""

LAUNCHER: Final = """# What spark-submit runs: the command line of pubsub-emulator.
from pubsub_emulator.cli.main import main

main()
"""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "include"})
_COMPILED: Final = frozenset({".pyc", ".so", ".pyd"})
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class ShipError(PubsubError):
    """A distribution that belongs into the environment is not installed here."""


def source_root() -> Path:
    """The directory that holds the package `pubsub_emulator`."""
    return Path(pubsub_emulator.__file__).absolute().parents[1]


def build_archive(target: Path | None = None) -> Path:
    """A zip of the packages' sources, byte-identical for the same sources; in the temporary directory by default."""
    if target is None:
        handle, name = tempfile.mkstemp(prefix="pubsub-emulator-", suffix=".zip")
        os.close(handle)
        target = Path(name)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in _sources():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, path.read_bytes())
    return target


def build_environment(target: Path) -> Path:
    """A tar of the packages and what they import, always the same bytes. Raises `ShipError`, `OSError`."""
    files = dict(_sources())
    for name in required_distributions():
        files |= _distribution_files(name)
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 1, file, 0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in sorted(files):
            data = files[name].read_bytes()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(data))
    return target


def required_distributions() -> list[str]:
    """`REQUIRED` and what they require in turn on this platform. Raises `ShipError` when one is not installed."""
    found: dict[str, Distribution] = {}
    wanted = list(REQUIRED)
    while wanted:
        name = wanted.pop()
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if name in REQUIRED:
                raise ShipError(f"{name} is not installed here and cannot be shipped") from None
            continue  # required on other platforms only
        for requirement in found[name].requires or ():
            required = _NAME.match(requirement)
            if required is not None and "extra ==" not in requirement:
                other = required.group().lower()
                wanted += [] if other in found else [other]
    return sorted(found)


def _sources() -> Iterator[tuple[str, Path]]:
    """Files that are neither compiled nor hidden: what an editor or a tool keeps beside sources is nobody else's."""
    root = source_root()
    for folder, below, names in os.walk(root / PACKAGE):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
            if path.suffix not in _COMPILED and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _distribution_files(name: str) -> dict[str, Path]:
    """The files of an installed distribution by their place below site-packages, scripts and tests left out."""
    files = distribution(name).files
    if files is None:
        raise ShipError(f"{name} does not say which files it installed")
    inside = (entry for entry in files if not PurePosixPath(entry).is_absolute() and ".." not in entry.parts)
    return {entry.as_posix(): Path(str(entry.locate())) for entry in inside if not _LEFT_OUT & set(entry.parts)}
