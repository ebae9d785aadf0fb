"""What we send is decoded by the field's own JavaScript library: IC-11c."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.icrc_vectors import VECTORS

from pubsub_emulator.icrc72.ic.trace import Recorder
from pubsub_emulator.icrc72.services import codec
from pubsub_emulator.icrc72.stories import Plan, begin, step

PACKAGES = ("@dfinity/candid@3.4.3", "@dfinity/principal@3.4.3")
SCRIPT = VECTORS.parents[1] / "support" / "candid_decode.mjs"
METHODS = ("icrc72_publish", "icrc72_handle_notification", "icrc72_confirm_notifications")


@pytest.fixture(scope="module")
def library() -> Path:
    """The library, installed into build/candid at its first use."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("no Node.js here")
    place = VECTORS.parents[2] / "build" / "candid"
    if not (place / "node_modules" / "@dfinity" / "candid").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--silent", *PACKAGES]
        if subprocess.run(command, cwd=place, check=False, timeout=200, capture_output=True).returncode:
            pytest.skip("the library cannot be installed here")
    return place


@pytest.mark.slow
def test_ic_11c_the_javascript_library_reads_every_message_of_a_story(library: Path) -> None:
    recorder = Recorder()
    story = begin(Plan(b"peer", rounds=10), (recorder,))
    for name, who in story.publishers.items():
        for _ in range(8):
            story.network.submit(who, who, name, b"")
    for _ in range(120):
        step(story)
    sent = [each for each in recorder.happenings if each.kind == "execute" and each.method in METHODS]
    assert {each.method for each in sent} == set(METHODS)
    script = library / "decode.mjs"
    script.write_text(SCRIPT.read_text())
    lines = "".join(f"{each.method} {each.data.hex()}\n" for each in sent)
    node = shutil.which("node") or "node"
    environment = {name: value for name, value in os.environ.items() if name == "PATH"}
    run = subprocess.run(
        [node, str(script)], input=lines, capture_output=True, text=True, check=True, timeout=200, env=environment
    )
    for each, shown in zip(sent, run.stdout.splitlines(), strict=True):
        (items,) = codec(each.method).args.decode(each.data)
        ours = [str(i) if isinstance(i, int) else f"{i.eventId} {i.namespace} {i.source.text}" for i in items]
        assert shown == ";".join(ours)
