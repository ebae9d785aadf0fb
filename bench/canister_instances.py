"""Measure the cost of undoing the effects of a message on a canister in WebAssembly.

`python -m bench.canister_instances` runs a message that writes one byte, in canisters whose memory
is full of other bytes. There are five columns:

same instance   in the instance of the previous message; its changes are then copied
trap            the same with a trap, after which the copy is written back
query           the same as a query, after which the copy is written back
new instance    with a trap after the memory has grown, which needs a new instance of the copy
process         in a process that is started for the message

The times are CPU time of this process and its children, the median of several runs.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import wasmtime

from interchain_events.icrc72 import ANONYMOUS, CanisterNetwork, WasmCanister

PAGE = 1 << 16
SIZES = (1, 8, 32, 63)
"""The sizes of the memories in MiB."""
_TIMES = 15
_TEXT = """(module
  (import "ic0" "msg_reply" (func $reply))
  (memory {pages})
  (func (export "canister_init")
    (memory.fill (i32.const 0) (i32.const 7) (i32.const {size})))
  (func (export "canister_update write")
    (i32.store8 (i32.const 9) (i32.const 1)) (call $reply))
  (func (export "canister_query read")
    (i32.store8 (i32.const 9) (i32.const 1)) (call $reply))
  (func (export "canister_update trap")
    (i32.store8 (i32.const 9) (i32.const 1)) unreachable)
  (func (export "canister_update grow")
    (drop (memory.grow (i32.const 1))) unreachable))"""
_PROCESS = (
    "from interchain_events.icrc72.ic.wasm.canister import WasmCanister; import sys;"
    " WasmCanister(sys.stdin.buffer.read())"
)


def cpu() -> float:
    """Return the CPU time of this process and its children in seconds."""
    spent = 0.0
    for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(whose)
        spent += usage.ru_utime + usage.ru_stime
    return spent


def median(run: Callable[[], object], times: int = _TIMES) -> float:
    """Return the median CPU time of a call in milliseconds."""
    figures = []
    for _ in range(times):
        before = cpu()
        run()
        figures.append(1e3 * (cpu() - before))
    return statistics.median(figures)


def measure(mebibytes: int) -> list[float]:
    """Return the times in milliseconds for a memory of this size."""
    pages = mebibytes << 4
    wasm = bytes(wasmtime.wat2wasm(_TEXT.format(pages=pages, size=pages * PAGE)))
    network = CanisterNetwork(1)
    canister = network.create(0, WasmCanister(wasm))

    def message(method: str) -> None:
        network.submit(ANONYMOUS, canister, method, b"")
        network.step(2)

    def process() -> None:
        subprocess.run([sys.executable, "-c", _PROCESS], input=wasm, check=True)  # noqa: S603  # this Python

    message("write")
    return [
        median(lambda: message("write")),
        median(lambda: message("trap")),
        median(lambda: network.query(ANONYMOUS, canister, "read", b"")),
        median(lambda: message("grow")),
        median(process, times=3),
    ]


def main() -> None:
    """Print a row for each size."""
    names = ("same instance", "trap", "query", "new instance", "process")
    print(f"{'MiB':>4} {' '.join(f'{name:>14}' for name in names)}  ms")
    began = time.monotonic()
    for size in SIZES:
        figures = " ".join(f"{figure:>14.2f}" for figure in measure(size))
        print(f"{size:>4} {figures}")
    print(f"{time.monotonic() - began:.0f} seconds")


if __name__ == "__main__":
    main()
