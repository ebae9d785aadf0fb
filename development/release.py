"""Make the files of a release, and do everything to them but the upload.

`python3 dev.py release` builds both source distributions from the last commit and a wheel from each
of them, checks their metadata and contents as an index does, installs them in fresh environments,
and writes them to `dist/` with their SHA-256 sums. With `--final`, the changelog must be that of
the version.
"""

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath

from development.environment import PYTHON, ROOT
from development.report import SetupError, last_line, say

OUT = ROOT / "dist"
SUMS = "SHA256SUMS"
_VERSION = re.compile(r'^VERSION: Final = "([^"]+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (\S+) \(", re.MULTILINE)
_WANTED = ("Author", "License-Expression", "Requires-Python", "Summary")
"""Fields that every distribution of this project states, besides name and version."""
_MOST_SUMMARY = 512
"""The maximum number of characters that an index allows for a summary."""
_BUILD = "import sys\nfrom setuptools import build_meta\nbuild_meta.build_sdist(sys.argv[1])\n"


def release(args: list[str]) -> int:
    """Make and check the files of a release. Return the exit code."""
    version = _version(ROOT)
    for fault in changelog_faults(ROOT, version):
        say(fault if "--final" in args else f"not for a release yet: {fault}")
        if "--final" in args:
            return 1
    with tempfile.TemporaryDirectory(prefix="release-") as name:
        folder = Path(name)
        files = _built(folder, version)
        faults = [*sdist_faults(files)]
        for file in files:
            faults += file_faults(file, version)
        for fault in faults:
            say(fault)
        if faults:
            return 1
        _install(folder, [file for file in files if file.suffix == ".whl"], version)
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir()
        for file in files:
            shutil.copy(file, OUT)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in _files(OUT)]
    (OUT / SUMS).write_text("\n".join(sums) + "\n", encoding="utf-8")
    for line in sums:
        say(f"dist/{line.split()[1]}: {line.split()[0]}")
    return 0


def _version(root: Path) -> str:
    """Return the version of a checkout."""
    text = (root / "pubsub_emulator/version.py").read_text(encoding="utf-8")
    version = _VERSION.search(text)
    if version is None:
        raise SetupError("pubsub_emulator/version.py: no VERSION")
    return version[1]


def changelog_faults(root: Path, version: str) -> Iterator[str]:
    """Yield reasons why the changelog of a checkout is not ready for a version."""
    waiting = [path.name for path in (root / "changes").rglob("*.*.md")]
    if waiting:
        yield f"changes/ has {len(waiting)} files that `towncrier build` puts into CHANGELOG.md"
    newest = _HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest is None or newest[1] != version:
        first = "nothing" if newest is None else newest[1]
        yield f"CHANGELOG.md begins with {first}, and the version is {version}"


# Building


def _built(folder: Path, version: str) -> list[Path]:
    """Build both distributions of the last commit and return their files."""
    source = folder / "source"
    source.mkdir()
    archive = folder / "commit.tar"
    _call("git", "archive", "--format=tar", f"--output={archive}", "HEAD")
    with tarfile.open(archive) as commit:
        # The filter exists since Python 3.11.4. The commit is our own, so older versions need none.
        commit.extraction_filter = getattr(tarfile, "data_filter", None)
        commit.extractall(source)  # noqa: S202  # as above
    made = folder / "made"
    made.mkdir()
    for project in (source, source / "interchain_events"):
        _call(PYTHON, "-c", _BUILD, made, folder=project)
    for sdist in sorted(made.glob("*.tar.gz")):
        say(f"building the wheel of {sdist.name}")
        options = (
            "--quiet",
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            made,
        )
        _call(PYTHON, "-m", "pip", "wheel", *options, sdist)
    names = ("pubsub_emulator", "interchain_events")
    wanted = []
    for name in names:
        wanted += [f"{name}-{version}{end}" for end in _ENDS]
    built = [file.name for file in _files(made)]
    if sorted(built) != sorted(wanted):
        raise SetupError(f"built were {', '.join(built)}, not {', '.join(wanted)}")
    return [made / name for name in wanted]


_ENDS = (".tar.gz", "-py3-none-any.whl")
"""The ends of the names of a source distribution and of its wheel."""


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name != SUMS)


def _call(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a program without this process's Python settings and return what it prints.

    Raises `SetupError`.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**variables, "PUBSUB_PURE": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"{Path(command[0]).name} {command[1]} failed: {last_line(done)}")
    return done.stdout + done.stderr


# Checking


def file_faults(file: Path, version: str) -> Iterator[str]:
    """Yield the faults for which an index or an installer would refuse a distribution."""
    names, metadata = _contents(file)
    for name in names:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            yield f"{file.name}: {name} leads out of it"
    distribution = file.name.partition("-")[0]
    if (str(metadata["Name"]).replace("-", "_"), metadata["Version"]) != (distribution, version):
        yield f"{file.name}: its metadata is of {metadata['Name']} {metadata['Version']}"
    for field in _WANTED:
        if not metadata[field]:
            yield f"{file.name}: {field} is missing"
    summary = str(metadata["Summary"] or "")
    if "\n" in summary or len(summary) > _MOST_SUMMARY:
        yield f"{file.name}: the summary is not one line of at most {_MOST_SUMMARY} characters"
    if not str(metadata["Description-Content-Type"]).startswith("text/markdown"):
        yield f"{file.name}: the description is not Markdown"
    if len(str(metadata.get_payload()).strip()) < len(summary):
        yield f"{file.name}: the description is empty"
    if file.suffix == ".whl":
        yield from _record_faults(file)


def _contents(file: Path) -> tuple[list[str], Message]:
    """Return the names and the metadata in a distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            return names, message_from_string(archive.read(place).decode())
    with tarfile.open(file) as archive:
        names = archive.getnames()
        top = file.name.removesuffix(".tar.gz")
        information = archive.extractfile(f"{top}/PKG-INFO")
        return names, message_from_string(
            "" if information is None else information.read().decode()
        )


def _record_faults(wheel: Path) -> Iterator[str]:
    """Yield the differences between the files of a wheel and its list, `RECORD`.

    A file can be missing from the wheel or from the list, or have another hash than in the list.
    """
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = list(csv.reader(io.StringIO(archive.read(place).decode())))
        listed = {row[0]: row[1] for row in rows}
        present = {name for name in archive.namelist() if not name.endswith("/")}
        for name in sorted(present ^ listed.keys()):
            yield f"{wheel.name}: {name} is {'not listed' if name in present else 'not in it'}"
        for name in sorted((present & listed.keys()) - {place}):
            digest = hashlib.sha256(archive.read(name)).digest()
            hashed = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            if listed[name] != f"sha256={hashed}":
                yield f"{wheel.name}: {name} has another hash than its list says"


def sdist_faults(files: Sequence[Path]) -> Iterator[str]:
    """Yield a fault for each source distribution whose requirements differ from its wheel's."""
    for sdist in (file for file in files if file.suffix == ".gz"):
        wheel = sdist.with_name(sdist.name.removesuffix(_ENDS[0]) + _ENDS[1])
        if wheel in files and _requirements(sdist) != _requirements(wheel):
            yield f"{sdist.name}: its requirements are not those of {wheel.name}"


def _requirements(file: Path) -> list[str]:
    return sorted(_contents(file)[1].get_all("Requires-Dist", []))


# Installing


def _install(folder: Path, wheels: Sequence[Path], version: str) -> None:
    """Install the first wheel alone, then both together, and start their commands.

    The packages that they require come from `.venv`. Raises `SetupError`.
    """
    first, _ = wheels
    alone = _environment(folder / "alone", [first])
    both = _environment(folder / "both", wheels)
    for scripts in (alone, both):
        output = _call(scripts / "pubsub", "--version", folder=folder)
        if output.split() != ["pubsub,", "version", version]:
            raise SetupError(f"the installed `pubsub --version` says {output.strip()}")
    _call(both / "pubsub", "prism", "--help", folder=folder)
    fail_if_missing = (
        "import sys, importlib.util as u; sys.exit(u.find_spec('interchain_events') is None)"
    )
    fail_if_present = fail_if_missing.replace("is None", "is not None")
    _call(both / "python", "-c", fail_if_missing, folder=folder)
    _call(alone / "python", "-c", fail_if_present, folder=folder)
    say("installed pubsub-emulator alone, and both distributions together: they start")


def _environment(home: Path, wheels: Sequence[Path]) -> Path:
    """Make an environment with some wheels, and return the folder of its programs."""
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = shutil.which("python", path=str(scripts)) or sys.executable
    install = ("--python", python, "install", "--quiet", "--no-index", "--no-deps")
    _call(PYTHON, "-m", "pip", *install, *wheels, folder=home.parent)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(_call(python, "-c", where).strip())
    # This adds the packages of `.venv`. Editable packages are path files, and Python does not
    # follow the path files of a folder that is added in this way.
    others = Path(_call(PYTHON, "-c", where).strip())
    (packages / "others.pth").write_text(f"{others}\n", encoding="utf-8")
    return scripts
