"""Run `pubsub` in forks of a process that has imported the modules of earlier runs.

Importing them takes two seconds of each start.

`python -m support.plumbing.forked` reads requests, one JSON object a line, and answers each with an
exit code.
"""

import atexit
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Any, Final, NoReturn

ROOT: Final = Path(__file__).resolve().parents[3]


def run(
    arguments: list[str],
    folder: Path,
    given: str | None,
    variables: dict[str, str],
    patience: float,
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder to its end. Raises `TimeoutExpired`."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with TemporaryDirectory() as place:
        files = [Path(place, name) for name in ("in", "out", "err", "modules")]
        files[0].write_text(given or "", encoding="utf-8")
        request = {
            "arguments": arguments,
            "folder": str(folder),
            "variables": variables,
            "files": [*map(str, files)],
        }
        print(json.dumps(request), file=server.stdin, flush=True)
        if not select([server.stdout], [], [], patience)[0]:
            server.kill()
            _server.cache_clear()
            raise subprocess.TimeoutExpired(arguments, patience)
        code = int(server.stdout.readline())
        said = [path.read_text(encoding="utf-8") for path in files[1:3]]
    return subprocess.CompletedProcess(arguments, code, *said)


@cache
def _server() -> "subprocess.Popen[str]":
    """Return the process that forks. Each process of tests has one."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    server = subprocess.Popen(
        [sys.executable, "-m", "support.plumbing.forked"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)  # ends with its input
    return server


def main() -> None:
    """Fork for each request. The child runs the program."""
    from pubsub_emulator.cli.main import (  # noqa: PLC0415  # only the server is to import it
        main as pubsub,
    )

    for line in sys.stdin:
        request = json.loads(line)
        gc.freeze()  # what is here is no work of the child's
        child = os.fork()
        if not child:
            _become(request)
            _end_with(pubsub)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(OSError):
            for module in Path(request["files"][-1]).read_text(encoding="utf-8").split():
                import_module(module)
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _become(request: dict[str, Any]) -> None:
    *files, modules = request["files"]
    atexit.register(lambda: Path(modules).write_text("\n".join(_own_modules()), encoding="utf-8"))
    for number, path in enumerate(files):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(os.dup(0), encoding="utf-8")
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.argv = ["pubsub", *request["arguments"]]


def _end_with(program: Callable[[], None]) -> NoReturn:
    """Run a program and end with its code, without taking all down that was imported."""
    code = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _own_modules() -> list[str]:
    return [
        name
        for name in sys.modules
        if name.startswith("pubsub_emulator.") and "__main__" not in name
    ]


if __name__ == "__main__":
    main()
