"""Compilation of modules; larger ones are compiled in a process of their own, which may fail.

The memory and time that the compiler needs grow faster than the module, so that a count of
instructions does not bound them. Modules of more than a few KiB are therefore compiled by another
process, with limits that the operating system enforces.
"""

import os
import resource
import subprocess
import sys
from typing import Final

import wasmtime

from interchain_events.icrc72.ic.errors import ModuleError
from interchain_events.icrc72.ic.wasm.engine import engine
from interchain_events.icrc72.ic.wasm.scan import Code

HERE_BYTES: Final = 16 << 10
"""The most bytes of a module that is compiled in this process."""
HERE_WORK: Final = 100_000
"""The most work of such a module, see `scan.Code.work`."""
HERE_LOCALS: Final = 20_000
"""The most local variables of such a module."""
COMPILER_BYTES: Final = 1 << 30
"""The most bytes of address space of the process that compiles."""
COMPILER_SECONDS: Final = 20
"""The most seconds of processor time that it may take."""
_OTHER_LIMIT_SECONDS: Final = 120
"""The seconds after which it is killed in any case, for example on a machine that is too busy."""
_PROGRAM: Final = "from interchain_events.icrc72.ic.wasm.compiler import main; main()"


def compiled(raw: bytes, code: Code) -> wasmtime.Module:
    """Compile a module. Raises `ModuleError` if that takes too much, and `WasmtimeError`."""
    small = len(raw) <= HERE_BYTES and code.work <= HERE_WORK and code.locals <= HERE_LOCALS
    if small:
        return wasmtime.Module(engine(), raw)
    try:
        process = subprocess.run(  # noqa: S603  # this interpreter
            [sys.executable, "-c", _PROGRAM, f"{COMPILER_BYTES}", f"{COMPILER_SECONDS}"],
            input=raw,
            capture_output=True,
            check=False,
            timeout=_OTHER_LIMIT_SECONDS,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except subprocess.TimeoutExpired:
        raise ModuleError(
            f"the module cannot be compiled within {_OTHER_LIMIT_SECONDS} seconds"
        ) from None
    if process.returncode:
        raise ModuleError(
            f"the module cannot be compiled with {COMPILER_BYTES >> 20:,} MiB and"
            f" {COMPILER_SECONDS} seconds of processor time"
        )
    return wasmtime.Module.deserialize(engine(), process.stdout)


def main() -> None:
    """Compile the module of standard input, and write it to standard output.

    The arguments are the most bytes of address space and the most seconds of processor time.
    """
    most_bytes, most_seconds = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    module = wasmtime.Module(engine(parallel=True), sys.stdin.buffer.read())
    sys.stdout.buffer.write(bytes(module.serialize()))
