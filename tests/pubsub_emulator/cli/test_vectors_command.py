"""`pubsub vectors check`: every golden file passes, and a flipped byte makes it fail."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.laboratory.vectors import check_document, known_formats

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
FILES = [
    *(
        f"tries/{name}"
        for name in ("roots", "op_sequences", "proofs", "child_tries", "pubsub", "negative_proofs")
    ),
    "trie_proofs/trie_proofs_values_omitted",
    *(
        f"tries/thirdparty/{name}"
        for name in ("smoldot_calculate_root", "sp_trie_lib_rs", "w3f_state_trie")
    ),
    *(
        f"tries/thirdparty/{name}"
        for name in ("gossamer_proofs", "smoldot_proof_decode", "sp_trie_test_res")
    ),
    "tries/thirdparty/smoldot_prefix_proof",
    "scale/hashing_scale",
    "signatures/signatures",
    "xcm/xcm_v5",
    "ied/global_ids",
    "prism/vectors",
]
FORMATS = known_formats()
HEX = re.compile(r"0x(?:[0-9a-f]{2}){2,}|[0-9a-f]{32,}")
TOLERANT = {
    "ied/global_ids",  # parts of ids that are refused anyway
    "prism/vectors",  # keys that nobody signs with, signatures that are refused anyway
    "signatures/signatures",
    "tries/negative_proofs",
    "tries/op_sequences",  # keys that are removed and were not there
    "tries/thirdparty/gossamer_proofs",
    "tries/thirdparty/smoldot_prefix_proof",  # nodes of other keys
    "trie_proofs/trie_proofs_values_omitted",  # values that are wrong already
}
"""Files with bytes that change no verdict; others of theirs do."""
UNCHECKED = {
    "smoldot_known_entries",
    "smoldot_error",
    "human",
    "tables",
    "made_by",
    "source",
    "oracle",
    "note",
}


def read(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def checked(name: str, document: dict[str, Any]) -> Any:
    return check_document(
        Path(name), document, next(each for each in FORMATS if each.fits(document))
    )


@pytest.mark.parametrize("name", FILES)
def test_every_golden_file_passes(name: str) -> None:
    found = checked(name, read(name))
    assert found.passed > 0
    assert found.failed == []


def hexes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the non-empty hex of a document is, but for what a format says it does not compute."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        if key in UNCHECKED or key == "relay_dispatch_queue_size":
            continue
        if isinstance(inner, str) and HEX.fullmatch(inner):
            yield (*path, key)
        else:
            yield from hexes(inner, (*path, key))


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_makes_a_case_fail(name: str) -> None:
    document = read(name)
    form = next(each for each in FORMATS if each.fits(document))
    draw = random.Random(name)
    skipped = {"trie_proof_values_omitted"} | {
        each.partition("[")[0] for form in FORMATS for each in form.unchecked
    }
    places = [place for place in hexes(document) if not skipped & {*map(str, place)}]
    drawn, unnoticed = draw.sample(places, min(12, len(places))), list[Any]()
    for place in drawn:
        part = _only(document, place)
        holder: Any = part
        for step in place[:-1]:
            holder = holder[0 if holder is part.get(place[0]) and isinstance(step, int) else step]
        text = holder[place[-1]]
        start = 2 * text.startswith("0x")
        at = start + 2 * draw.randrange((len(text) - start) // 2)
        holder[place[-1]] = f"{text[:at]}{int(text[at : at + 2], 16) ^ 1:02x}{text[at + 2 :]}"
        if not check_document(Path(name), part, form).failed:
            unnoticed.append(place)
    assert len(unnoticed) < (len(drawn) if name in TOLERANT else 1), unnoticed


def _only(document: dict[str, Any], place: tuple[Any, ...]) -> dict[str, Any]:
    """A copy of the document with the one vector that a place is in: the others would only cost
    time.
    """
    part = {
        key: value if not isinstance(value, list) else value[:1] for key, value in document.items()
    }
    if isinstance(document[place[0]], list):
        part[place[0]] = [document[place[0]][place[1]]]
    copied: dict[str, Any] = json.loads(json.dumps(part))
    return copied


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(pubsub, ["vectors", "check", *arguments])
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    return result.exit_code, result.output


def test_the_command_counts_and_tells(tmp_path: Path) -> None:
    path = VECTORS / "tries" / "roots.json"
    code, text = run(str(path))
    assert (code, "143 passed, 0 failed" in text) == (0, True)
    document = read("tries/roots")
    document["vectors"][3]["root_v1"] = "0x" + "00" * 32
    document["vectors"][4] = {}
    (tmp_path / "bad.json").write_text(json.dumps(document), encoding="utf-8")
    code, text = run(str(tmp_path))
    assert (code, "141 passed, 2 failed" in text) == (1, True)
    assert "the root in layout V1 is 0x" in text
    assert "cannot be read: KeyError" in text
    code, text = run(str(tmp_path), "--json")
    assert [len(each["failed"]) for each in json.loads(text)] == [2]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"vectors": [{"strange": 1}]}'])
def test_a_file_of_no_known_format_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text, encoding="utf-8")
    code, said = run(str(tmp_path / "odd.json"))
    assert code == 2
    assert "odd.json: " in said
