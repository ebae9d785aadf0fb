"""Units on processes of this machine: each is a Python of its own that reads tasks from a pipe and answers on another.

The workers import this program and nothing of the program that started them, so a script needs no main guard. One that
dies is replaced and its unit given out again, up to `ATTEMPTS` times.
"""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from typing import Final

import pubsub_emulator
from pubsub_emulator.spark_audit.engine.engine import Answer, EngineLost, Report, Unit, heaviest_first, usable_cores
from pubsub_emulator.spark_audit.engine.rules import named_rules

ATTEMPTS: Final = 4
"""As many as Spark makes by default."""


class PoolMapper:
    """Units over processes; started with the first tasks and kept until `close`."""

    name = "pool"

    def __init__(self, workers: int | None = None) -> None:
        self.cores = workers or usable_cores()
        self._workers: list[_Worker] = []

    def map(
        self, unit: Unit, tasks: Sequence[str], out: str, report: Report, weights: Sequence[int] | None = None
    ) -> list[Answer]:
        """The receipts of all tasks, in their order. Raises `EngineLost`."""
        while len(self._workers) < min(self.cores, len(tasks)):
            self._workers.append(_Worker())
        batch = _Batch(f"{unit.__module__}:{unit.__qualname__}", tasks, out, heaviest_first(len(tasks), weights))
        threads = [Thread(target=batch.serve, args=(worker,), daemon=True) for worker in self._workers]
        for thread in threads:
            thread.start()
        try:
            batch.wait(report)
        except BaseException as error:
            batch.stop(f"stopped by {type(error).__name__}")
            self.close()  # what the workers are at is dropped with them
            raise
        finally:
            for thread in threads:
                thread.join()
        return batch.receipts()

    def close(self) -> None:
        """Stop the workers."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()


class _Batch:
    """The tasks of one call, and what came of them."""

    def __init__(self, unit: str, tasks: Sequence[str], out: str, order: Sequence[int]) -> None:
        self._unit = unit
        self._tasks = tasks
        self._out = out
        self._rules = named_rules()
        self._waiting = deque((at, 1) for at in order)
        self._done: dict[int, Answer] = {}
        self._shares: dict[int, float] = {}  # of the tasks under way, how much of them is done
        self._error: str | None = None
        self._changed = Condition()

    def serve(self, worker: "_Worker") -> None:
        while (taken := self._take()) is not None:
            at, attempt = taken
            try:
                request = {"unit": self._unit, "task": self._tasks[at], "out": self._out, "rules": self._rules}
                answer = worker.ask(request, partial(self._heard, at))
            except (OSError, ValueError, EOFError):
                if self._error is not None:
                    return
                self._lost(at, attempt, worker.restart())
                continue
            self._answered(at, answer)

    def wait(self, report: Report) -> None:
        """Wait until all is done. Raises `EngineLost`."""
        reported = (0, 0.0)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._far() != reported or self._error is not None)  # noqa: B023  # used at once
                reported = self._far()
                error = self._error
            if error is not None:
                raise EngineLost(error)
            report(sum(reported))
            if reported[0] == len(self._tasks):
                return

    def _far(self) -> tuple[int, float]:
        """The number of tasks done, with the shares of those under way: a task that ends changes it."""
        return len(self._done), sum(self._shares.values())

    def _heard(self, at: int, share: float) -> None:
        with self._changed:
            self._shares[at] = share
            self._changed.notify_all()

    def stop(self, why: str) -> None:
        with self._changed:
            self._error = self._error or why
            self._changed.notify_all()

    def receipts(self) -> list[Answer]:
        return [self._done[at] for at in range(len(self._tasks))]

    def _take(self) -> tuple[int, int] | None:
        """A task that no worker has. Waits while a running one may still fail."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._error is not None or len(self._done) == len(self._tasks)
            )
            if self._error is not None or not self._waiting:
                return None
            return self._waiting.popleft()

    def _answered(self, at: int, answer: Answer) -> None:
        with self._changed:
            self._shares.pop(at, None)
            if "error" in answer:
                self._error = self._error or answer["error"]
            else:
                self._done[at] = answer["receipt"]
            self._changed.notify_all()

    def _lost(self, at: int, attempt: int, code: int | None) -> None:
        with self._changed:
            self._shares.pop(at, None)
            if attempt >= ATTEMPTS:
                self._error = f"a unit of work was lost {ATTEMPTS} times with its worker process (exit code {code})"
            else:
                self._waiting.appendleft((at, attempt + 1))
            self._changed.notify_all()


class _Worker:
    """One process and its two pipes."""

    def __init__(self) -> None:
        self._process = _start()

    def ask(self, request: Answer, heard: Callable[[float], None]) -> Answer:
        """Have one task done; `heard` is told its shares. Raises `OSError`, `ValueError`, `EOFError` if it is gone."""
        pipes = self._process.stdin, self._process.stdout
        if pipes[0] is None or pipes[1] is None:
            raise EOFError
        pipes[0].write(json.dumps(request) + "\n")
        pipes[0].flush()
        while True:
            line = pipes[1].readline()
            if not line.endswith("\n"):
                raise EOFError
            answer: Answer = json.loads(line)
            if "share" not in answer:
                return answer
            heard(answer["share"])

    def restart(self) -> int | None:
        """Start another process in its place, and give the exit code of the old one."""
        self.stop()
        code = self._process.returncode
        self._process = _start()
        return code

    def stop(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        self._process.wait()


def _start() -> subprocess.Popen[str]:
    root = str(Path(pubsub_emulator.__file__).absolute().parents[1])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator.spark_audit.engine.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
        encoding="utf-8",
    )
