"""The engine that runs units on a pool of processes on this machine.

Each worker is a Python process of its own that reads tasks from a pipe and answers on another one.
It imports this program, but not the program that started it. So a script that uses an audit does
not need `if __name__ == "__main__"`. A worker that dies is replaced, and its unit is tried again,
up to `ATTEMPTS` times in all.
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
from pubsub_emulator.spark_audit.engine.engine import (
    Answer,
    EngineLost,
    Report,
    Unit,
    heaviest_first,
    usable_cores,
)

ATTEMPTS: Final = 4
"""How often a unit is tried if its workers die. Spark has the same default."""


class PoolMapper:
    """An engine whose workers are started with the first tasks and run until `close`."""

    name = "pool"

    def __init__(self, workers: int | None = None) -> None:
        self.cores = workers or usable_cores()
        self._workers: list[_Worker] = []

    def map(
        self,
        unit: Unit,
        tasks: Sequence[str],
        out: str,
        report: Report,
        weights: Sequence[int] | None = None,
    ) -> list[Answer]:
        """Run a unit on all tasks and return the receipts in their order. Raises `EngineLost`."""
        while len(self._workers) < min(self.cores, len(tasks)):
            self._workers.append(_Worker())
        batch = _Batch(
            f"{unit.__module__}:{unit.__qualname__}",
            tasks,
            out,
            order=heaviest_first(len(tasks), weights),
        )
        threads = [
            Thread(target=batch.serve, args=(worker,), daemon=True) for worker in self._workers
        ]
        for thread in threads:
            thread.start()
        try:
            batch.wait(report)
        except BaseException as error:
            batch.stop(f"stopped by {type(error).__name__}")
            # Workers may still run tasks whose results are not needed any more.
            self.close()
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
    """The tasks of one call of `map`, with their state.

    One thread for each worker runs `serve`. The thread that called `map` runs `wait`. `_changed`
    guards all state.
    """

    def __init__(self, unit: str, tasks: Sequence[str], out: str, order: Sequence[int]) -> None:
        self._unit = unit
        self._tasks = tasks
        self._out = out
        self._waiting = deque((number, 1) for number in order)
        """Numbers of tasks that no worker has, with the number of the next attempt."""
        self._done: dict[int, Answer] = {}
        self._shares: dict[int, float] = {}
        """The finished shares of running tasks, by number."""
        self._error: str | None = None
        self._changed = Condition()

    def serve(self, worker: "_Worker") -> None:
        """Give tasks to a worker until the batch ends."""
        while (taken := self._take()) is not None:
            number, attempt = taken
            try:
                request = {"unit": self._unit, "task": self._tasks[number], "out": self._out}
                answer = worker.ask(request, partial(self._note_share, number))
            # The process died, or was stopped because the batch has an error.
            except (OSError, ValueError, EOFError):
                if self._error is not None:
                    return
                self._lost(number, attempt, worker.restart())
                continue
            self._answered(number, answer)

    def wait(self, report: Report) -> None:
        """Wait until all tasks are done and report the progress. Raises `EngineLost`."""
        reported = (0, 0.0)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._sums() != reported or self._error is not None)  # noqa: B023  # used at once
                reported = self._sums()
                error = self._error
            if error is not None:
                raise EngineLost(error)
            report(sum(reported))
            if reported[0] == len(self._tasks):
                return

    def _sums(self) -> tuple[int, float]:
        """Return the number of finished tasks, and the sum of the shares of running ones."""
        return len(self._done), sum(self._shares.values())

    def _note_share(self, number: int, share: float) -> None:
        """Record the finished share of a task."""
        with self._changed:
            self._shares[number] = share
            self._changed.notify_all()

    def stop(self, reason: str) -> None:
        """End the batch with an error. The first error counts."""
        with self._changed:
            self._error = self._error or reason
            self._changed.notify_all()

    def receipts(self) -> list[Answer]:
        return [self._done[number] for number in range(len(self._tasks))]

    def _take(self) -> tuple[int, int] | None:
        """Return the number of a waiting task and the number of the attempt.

        Returns `None` at the end of the batch.

        If all remaining tasks are running, wait: one may be lost and have to be done again.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._waiting or self._error is not None or len(self._done) == len(self._tasks)
                )
            )
            if self._error is not None or not self._waiting:
                return None
            return self._waiting.popleft()

    def _answered(self, number: int, answer: Answer) -> None:
        """Record a worker's answer, which is a receipt or an error. An error ends the batch."""
        with self._changed:
            self._shares.pop(number, None)
            if "error" in answer:
                self._error = self._error or answer["error"]
            else:
                self._done[number] = answer["receipt"]
            self._changed.notify_all()

    def _lost(self, number: int, attempt: int, code: int | None) -> None:
        """Record that a task was lost with its worker, and let it be tried again."""
        with self._changed:
            self._shares.pop(number, None)
            if attempt >= ATTEMPTS:
                self._error = (
                    f"a unit of work was lost {ATTEMPTS} times with its worker process (exit code"
                    f" {code})"
                )
            else:
                self._waiting.appendleft((number, attempt + 1))
            self._changed.notify_all()


class _Worker:
    """A worker process with its two pipes."""

    def __init__(self) -> None:
        self._process = _start()

    def ask(self, request: Answer, report_share: Callable[[float], None]) -> Answer:
        """Send a task to the worker and return the answer.

        `report_share` is called with finished shares. Raises `OSError`, `ValueError` or `EOFError`
        if the process is gone.
        """
        requests = self._process.stdin
        answers = self._process.stdout
        if requests is None or answers is None:
            raise EOFError
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        while True:
            line = answers.readline()
            # The process died while writing this line.
            if not line.endswith("\n"):
                raise EOFError
            answer: Answer = json.loads(line)
            if "share" not in answer:
                return answer
            report_share(answer["share"])

    def restart(self) -> int | None:
        """Replace the process and return the exit code of the old one."""
        self.stop()
        code = self._process.returncode
        self._process = _start()
        return code

    def stop(self) -> None:
        """Kill the process and close its pipes."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        self._process.wait()


def _start() -> subprocess.Popen[str]:
    """Start a worker process that can import this program, whether or not it is installed."""
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
