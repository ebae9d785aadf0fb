"""Archives with this program, for the machines of a cluster.

    sources       a zip of the project's packages, for `--py-files`; the workers must have the
                  third-party packages
    environment   a tar of the project's packages and everything that they import, for
                  `--archives …#pubsub` with PYTHONPATH `pubsub`; the workers need only a Python of
                  the same version and platform

Both contain only the sources of the project, so they work whether or not its packages are compiled
on this machine. Both contain the installed extensions with their entry points, because workers also
decode events of their pallets. Packages that only commands of extensions import (gRPC, database
drivers) are left out.
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
from importlib.resources import files as files_of
from pathlib import Path, PurePosixPath
from typing import Final

import pubsub_emulator
from pubsub_emulator.extension import extensions
from pubsub_emulator.primitives.errors import MissingPackage, PubsubError

PACKAGE: Final = "pubsub_emulator"
"""The package that contains all rooms."""
REQUIRED: Final = (
    "click",
    "coincurve",
    "cryptography",
    "obstore",
    "py-sr25519-bindings",
    "pyarrow",
    "pycryptodome",
    "pydantic",
    "rich",
    "sortedcontainers",
    "xxhash",
)
"""Distributions that the program imports on a driver or a worker. Spark and Java are part of the
cluster."""

MOUNT: Final = "pubsub"
"""The name of the folder into which an environment is unpacked, and its PYTHONPATH on workers."""

LAUNCHER: Final = """# What spark-submit runs: the command line of pubsub-emulator.
from pubsub_emulator.cli.main import main

main()
"""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all files in a zip, so that equal sources give equal bytes."""
_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "include"})
"""Folders of a distribution that workers do not need."""
_MADE: Final = frozenset({"build", "dist", "man"})
"""Folders that builds leave in a package of a checkout."""
_ENTRY_POINTS: Final = frozenset({"METADATA", "entry_points.txt"})
"""Files of a distribution's metadata by which an extension is found."""
_COMPILED: Final = frozenset({".pyc", ".so", ".pyd"})
"""Endings of compiled files."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


class ShipError(PubsubError):
    """A distribution that is needed in the environment is not installed on this machine."""


class NotInstalled(ShipError, MissingPackage):
    """A distribution of `REQUIRED` is not installed here. `name` is its name."""


def source_root() -> Path:
    """Return the directory that contains the package `pubsub_emulator`."""
    return Path(pubsub_emulator.__file__).absolute().parents[1]


def build_archive(target: Path | None = None) -> Path:
    """Write a zip of the sources and return its path, by default in the temporary directory.

    Equal sources give equal bytes.
    """
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
    """Write a tar of the packages and everything that they import.

    Equal files give equal bytes. Raises `ShipError`, `OSError`.
    """
    files = dict(_sources())
    for name in required_distributions():
        files |= _distribution_files(name)
    with (
        target.open("wb") as file,
        # Without a name and a time, equal files give equal bytes.
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,
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
    """Return the names of `REQUIRED` and of everything that they require on this platform.

    Raises `ShipError` if one of `REQUIRED` is not installed.
    """
    distributions: dict[str, Distribution] = {}
    wanted = list(REQUIRED)
    while wanted:
        name = wanted.pop()
        try:
            distributions[name] = distribution(name)
        except PackageNotFoundError:
            if name in REQUIRED:
                error = NotInstalled(f"{name} is not installed here and cannot be shipped")
                error.name = name
                raise error from None
            # A requirement that is not installed is only needed on other platforms.
            continue
        for requirement in distributions[name].requires or ():
            required = _NAME.match(requirement)
            if required is None or "extra ==" in requirement:
                continue
            other = required.group().lower()
            if other not in distributions:
                wanted.append(other)
    return sorted(distributions)


def _sources() -> Iterator[tuple[str, Path]]:
    """Yield the files of the project and of the extensions by their names in an archive."""
    yield from _sources_of(source_root() / PACKAGE)
    for extension in extensions():
        yield from _sources_of(Path(str(files_of(extension.package))))
        for name, path in _distribution_files(extension.distribution).items():
            if path.name in _ENTRY_POINTS and path.parent.suffix == ".dist-info":
                yield name, path


def _sources_of(package: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package by their names in an archive.

    Compiled and hidden files are left out, because tools and editors made them.
    """
    root = package.parent
    for folder, subfolders, names in os.walk(package):
        # `os.walk` only enters the folders that remain in this list.
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".") and not name.endswith(".egg-info") and name not in _MADE
        )
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.suffix not in _COMPILED and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _distribution_files(name: str) -> dict[str, Path]:
    """Return the files of an installed distribution by their paths below site-packages.

    Scripts, tests and headers are left out. Raises `ShipError` if the distribution does not list
    its files.
    """
    files = distribution(name).files
    if files is None:
        raise ShipError(f"{name} does not say which files it installed")
    inside = (
        entry
        for entry in files
        if not PurePosixPath(entry).is_absolute() and ".." not in entry.parts
    )
    return {
        entry.as_posix(): Path(str(entry.locate()))
        for entry in inside
        if not _LEFT_OUT & set(entry.parts)
    }
