"""Work in forks of this process: each job starts from the same memory and leaves nothing behind in it."""

import json
import os
import resource
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

Job = TypeVar("Job")
Answer = dict[str, Any]

MEMORY = 6 << 30
"""Bytes of address space a job may take: a mutant can make a list grow without end."""

_TIMEOUTS = {signal.SIGPROF, signal.SIGALRM}


def in_children(
    jobs: Iterable[Job], workers: int, folder: Path, work: Callable[[Job, int], Answer], *, longest: int = 0
) -> Iterator[tuple[Job, Answer, float]]:
    """Do each job in a child, at most `workers` at a time, and yield what it answers and the seconds it took.

    `work` is told a number below `workers` that no other job has at the same time. A child that is ended by one of its
    timers answers `{"verdict": "timeout"}`, one that ends in any other way without an answer `{"verdict": "crash"}`;
    after `longest` seconds, unless 0, any child is ended.
    """
    todo = deque(jobs)
    free = list(range(workers))
    running: dict[int, tuple[Job, int, float]] = {}
    while True:
        while free and todo:
            job, slot = todo.popleft(), free.pop()
            child = os.fork()
            if child == 0:
                _answer(folder, work, job, slot, longest)
            running[child] = job, slot, time.monotonic()
        if not running:
            return
        child, status = os.wait()
        job, slot, began = running.pop(child)
        free.append(slot)
        yield job, _read(folder / f"answer-{child}", os.waitstatus_to_exitcode(status)), time.monotonic() - began


def _answer(folder: Path, work: Callable[[Job, int], Answer], job: Job, slot: int, longest: int) -> None:
    """In the child: never returns."""
    path = folder / f"answer-{os.getpid()}"
    try:
        signal.alarm(longest)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        answer = work(job, slot)
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.write_text(json.dumps(answer), encoding="utf-8")
    except BaseException:  # noqa: BLE001  # it is told to the parent
        path.write_text(json.dumps({"verdict": "error", "by": traceback.format_exc()}), encoding="utf-8")
    finally:
        os._exit(0)


def _read(path: Path, code: int) -> Answer:
    if -code in _TIMEOUTS:
        return {"verdict": "timeout"}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {"verdict": "crash", "by": f"exit code {code}"}
    finally:
        path.unlink(missing_ok=True)


def silence() -> None:
    """Nothing that tests print is of interest here."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(null, stream)
