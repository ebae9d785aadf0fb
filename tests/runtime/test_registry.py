"""Events and errors of every pallet decode, whatever a program imported before."""

import subprocess
import sys

from pubsub_emulator.runtime.framework import dispatch, events
from pubsub_emulator.runtime.framework.pallet_indices import DECLARED_IN, PALLET_INDEX, declare

ALONE = """
import sys
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.runtime.framework.dispatch import read_dispatch_error
from pubsub_emulator.runtime.framework.events import decode_records
for text in sys.argv[1:]:
    kind, data = text.split(":")
    found = decode_records(bytes.fromhex(data)) if kind == "event" else read_dispatch_error(Reader(bytes.fromhex(data)))
    print(found[0].event if kind == "event" else found)
"""


def test_the_table_names_every_module_that_declares_events_or_errors_and_no_other() -> None:
    for pallet in PALLET_INDEX:
        declare(pallet)
    found: dict[str, set[str]] = {}
    for (pallet, _), made in events._EVENTS.items():
        found.setdefault(pallet, set()).add(made.__module__.removeprefix("pubsub_emulator."))
    for pallet, errors in dispatch._PALLET_ERRORS.items():
        found.setdefault(pallet, set()).add(errors.__module__.removeprefix("pubsub_emulator."))
    assert {pallet: set(modules) for pallet, modules in DECLARED_IN.items()} == found


def test_a_program_that_imports_the_decoders_alone_reads_them() -> None:
    cases = {
        "event:04" + "02" + "6603" + "e8030000" + "00" + "00": "PublisherDisabled",  # one record, no topics
        "error:03" + "3c" + "00000000": "Hrmp::",
        "error:03" + "63" + "00000000": "XcmPallet::",
    }
    done = subprocess.run([sys.executable, "-c", ALONE, *cases], capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == len(cases), done.stderr
    for line, said in zip(done.stdout.splitlines(), cases.values(), strict=True):
        assert said in line
