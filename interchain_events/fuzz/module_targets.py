"""The target that runs drawn modules of canisters in a process of their own.

A module is a surprise if the process ends, needs too long for one input or takes too much memory,
or if a trap or a query changes the state of a canister.
"""

import atexit
import select
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import BinaryIO, Final, cast

from interchain_events.icrc72.errors import Icrc72Error
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import DefensiveFailure

MOST_SECONDS: Final = 60
"""The longest time in seconds for one input, also on a busy machine."""
MOST_MEMORY: Final = 256 << 20
"""The greatest memory of the process, in bytes."""
_LOOKS_A_SECOND: Final = 20
_SEEDS: Final = 40
_SEED_BYTES: Final = 400
_PROGRAM: Final = "interchain_events.fuzz.module_worker"


class Worker:
    """A process that runs inputs. If it dies, another one is started for the next input."""

    def __init__(
        self, program: str = _PROGRAM, seconds: float = MOST_SECONDS, memory: int = MOST_MEMORY
    ) -> None:
        self._program = program
        self._seconds = seconds
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, data: bytes) -> str:
        """Run an input.

        Raises `Icrc72Error` if its module is refused, and `DefensiveFailure` for a surprise.
        """
        process = self._started()
        try:
            result = self._result(process, data)
        except BaseException:
            self.end()
            raise
        kind, _, words = result.partition(" ")
        if kind == "read":
            return words
        if kind == "refused":
            raise Icrc72Error(words)
        raise DefensiveFailure(words)

    def pid(self) -> int:
        """Return the id of the process, and start it if necessary."""
        return self._started().pid

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-m", self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            atexit.register(self.end)
        return self._process

    def _result(self, process: "subprocess.Popen[bytes]", data: bytes) -> str:
        """Send an input and wait for the result. Raises `DefensiveFailure`."""
        stdin = cast("BinaryIO", process.stdin)
        stdout = cast("BinaryIO", process.stdout)
        try:
            stdin.write(len(data).to_bytes(4, "little") + data)
            stdin.flush()
        except BrokenPipeError:
            raise DefensiveFailure(f"the process ended with code {process.wait()}") from None
        end = monotonic() + self._seconds
        while not select.select([stdout], [], [], 1 / _LOOKS_A_SECOND)[0]:
            self._check_memory(process.pid)
            if monotonic() > end:
                raise DefensiveFailure(f"no end after {self._seconds} seconds")
        length = stdout.read(4)
        if not length:
            raise DefensiveFailure(f"the process ended with code {process.wait()}")
        result = stdout.read(int.from_bytes(length, "little"))
        self._check_memory(process.pid)
        return result.decode()

    def _check_memory(self, pid: int) -> None:
        """Raise `DefensiveFailure` if the process has ever taken too much memory."""
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        # Only Linux has this file, and it does not exist after the process has ended.
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:") and int(line.split()[1]) << 10 > self._memory:
                raise DefensiveFailure(f"more than {self._memory >> 20} MiB of memory")


_WORKER: Final = Worker()


def _seeds() -> Iterable[bytes]:
    # The process needs wasmtime. If it is missing, the command names the extra with it.
    import wasmtime  # noqa: F401

    draws = Draws(b"modules", "canister-run")
    for _ in range(_SEEDS):
        yield draws.take(_SEED_BYTES)


@target("canister-run", "a drawn module of a canister, run and upgraded", _seeds)
def _run(data: bytes) -> str:
    return _WORKER.run(data)
