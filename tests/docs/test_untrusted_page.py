"""docs/untrusted.md is made of a table whose limits hold, and nobody parses a stranger's bytes
beside it.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plumbing.limits import PROBES, limits, most
from support.plumbing.processes import ROOT, environment

from pubsub_emulator.files.readers import ReaderRow, all_rows
from pubsub_emulator.fuzz.targets import ALL

PACKAGES = (ROOT / "pubsub_emulator", ROOT / "interchain_events")
TESTS = ROOT / "tests"
STORIES = {"liveness", "icrc", "canister-run"}
"""Targets that play stories and read no file."""


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.what)
def test_a_row_names_code_that_is_there(row: ReaderRow) -> None:
    path, _, names = row.reader.partition("::")
    tree: ast.AST = ast.parse((ROOT / path).read_text("utf-8"))
    for name in names.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        tree = next(
            each for each in ast.walk(tree) if isinstance(each, kinds) and each.name == name
        )


def test_every_input_is_bounded_in_bytes() -> None:
    """Its own limits count bytes, or those of each input that it is a part of."""
    rows = {row.what: row for row in all_rows()}

    def bounded(row: ReaderRow) -> bool:
        if any(limit.counts_bytes for limit in row.limits):
            return True
        return bool(row.within) and all(bounded(rows[whole]) for whole in row.within)

    assert not [row.what for row in rows.values() if not bounded(row)]


def test_every_target_has_a_row_and_every_row_a_target() -> None:
    targets = {row.target for row in all_rows() if row.target}
    assert targets == {target.name for target in ALL} - STORIES


def test_a_limit_is_used_where_it_is_said_to_hold() -> None:
    """Somewhere in the package the constant is read, not only defined."""
    read = {
        node.id if isinstance(node, ast.Name) else node.attr
        for package in PACKAGES
        for path in package.rglob("*.py")
        if path.name != "readers.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    for constant in limits():
        assert constant.partition(":")[2].split(".")[-1] in read, constant


def _names(path: Path, module: str, names: str) -> bool:
    """Whether a test imports a limit, or its module, and names it."""
    text, last = path.read_text("utf-8"), names.rsplit(".", maxsplit=1)[-1]
    if last not in text:
        return False
    above, _, leaf = module.rpartition(".")
    if f'"{above}.{leaf}"' in text or f"{above}.{leaf}.{last}" in text:  # changed by its name
        return True
    first = names.split(".", maxsplit=1)[0]
    return any(
        (
            node.module == f"{above}.{leaf}"
            and first in given
            and (first != last or text.count(last) > 1)
        )
        or (node.module == above and leaf in given)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for given in [{each.name for each in node.names}]
    )


def test_every_limit_has_a_probe_or_a_test_that_names_it() -> None:
    tests = [path for path in TESTS.rglob("test_*.py") if path.name != Path(__file__).name]
    others = [each.partition(":") for each in limits() if each not in PROBES]
    assert not [
        f"{module}:{names}"
        for module, _, names in others
        if not any(_names(each, module, names) for each in tests)
    ]


@pytest.fixture(scope="module")
def reader() -> Iterator["subprocess.Popen[str]"]:
    """The process that has a fork read each input."""
    command = [sys.executable, "-m", "support.plumbing.limits"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), cwd=ROOT, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.communicate()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.xdist_group("limits")
@pytest.mark.parametrize("constant", PROBES)
def test_input_at_the_limit_is_read_and_more_refused_in_bounded_memory(
    constant: str, reader: "subprocess.Popen[str]"
) -> None:
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert constant in limits()
    found = {}
    for where in ("at", "beyond"):
        print(constant, where, file=reader.stdin, flush=True)
        found[where] = json.loads(reader.stdout.readline())
        assert found[where]["grown"] <= most(constant, found[where]["size"]), found
    assert not found["at"]["said"], found
    assert found["beyond"]["said"].startswith(("interchain_events.", "pubsub_emulator.")), found


# Parsers

PARSERS = {
    "loads",
    "load",
    "decompress",
    "DictReader",
    "ParquetFile",
    "read_table",
    "FromString",
    "ParseFromString",
}
PARSERS |= {
    "Reader",
    "CallReader",
    "parse_json",
    "parse_toml",
    "read_json",
    "model_validate_json",
    "validate_json",
}

OWN = {
    "what this program wrote itself: its stores, units of work and receipts": (
        "interchain_events/distributor/adapter/desk.py",
        "interchain_events/distributor/adapter/evm/ledger.py",
        "interchain_events/distributor/core/",
        "interchain_events/distributor/simulation/",
        "interchain_events/distributor/service/figures.py",
        "interchain_events/distributor/service/http.py",
        "interchain_events/distributor/service/openapi.py",
        "interchain_events/events/values.py",
        "interchain_events/icrc72/keys.py",
        "interchain_events/icrc72/conformance/rules.py",
        "interchain_events/icrc72/ic/stable.py",
        "pubsub_emulator/spark_audit/audit/",
        "pubsub_emulator/spark_audit/engine/",
        "pubsub_emulator/spark_audit/judge/task.py",
        "pubsub_emulator/spark_audit/judge/units.py",
        "pubsub_emulator/spark_audit/judge/results.py",
        "pubsub_emulator/spark_audit/simulate/",
        "pubsub_emulator/spark_audit/spark/",
        "pubsub_emulator/spark_audit/tables/",
        "interchain_events/delivery_audit/",
        "pubsub_emulator/node/local.py",
        "pubsub_emulator/files/extras.py",
        "pubsub_emulator/explorer/live.py",
        "pubsub_emulator/laboratory/mutation.py",
        "pubsub_emulator/laboratory/targets.py",
        "pubsub_emulator/node/fuzz_targets.py",
        "pubsub_emulator/node/lying_node.py",
        "pubsub_emulator/fuzz/fetch_targets.py",
        "pubsub_emulator/extension.py",
        "pubsub_emulator/files/readers.py",
        "pubsub_emulator/spark_audit/fuzz_targets.py",
        "interchain_events/fuzz/",
        "pubsub_emulator/testing/proof_sizes.py",
    ),
    "the state of a chain, whose root was checked": (
        "pubsub_emulator/runtime/",
        "pubsub_emulator/node/types/",
        "pubsub_emulator/primitives/pubsub.py",
        "interchain_events/icrc72/ic/candid/",
        "pubsub_emulator/spark_audit/judge/imported.py",
        "pubsub_emulator/explorer/remote.py",
    ),
    "the parsers themselves, and what they are made of": (
        "pubsub_emulator/files/untrusted.py",
        "pubsub_emulator/primitives/",
        "pubsub_emulator/trie/decoded.py",
    ),
    "a row's reader, called by its name, or bytes that such a reader bounded": (
        "pubsub_emulator/cli/commands/evidence/run.py",
        "pubsub_emulator/inspection/drawing.py",
        "interchain_events/cli/commands/icrc72/run.py",
        "pubsub_emulator/cli/commands/replay/run.py",
        "pubsub_emulator/inspection/kinds.py",
        "pubsub_emulator/inspection/parquet.py",
        "pubsub_emulator/session/inspection.py",
        "pubsub_emulator/session/network_commands.py",
        "pubsub_emulator/client/answers.py",
        "pubsub_emulator/proving/sources.py",
        "pubsub_emulator/client/decode.py",
        "interchain_events/distributor/service/access.py",
        "interchain_events/prism/core/document.py",
        "interchain_events/distributor/service/problems.py",
        "interchain_events/distributor/service/requests.py",
        "interchain_events/events/log/sources/rpc.py",
        "interchain_events/events/subscriptions/sse.py",
        "interchain_events/icrc72/conformance/wording.py",
        "interchain_events/icrc72/ic/wasm/scan.py",
        "pubsub_emulator/laboratory/novelty.py",
        "pubsub_emulator/laboratory/verifier.py",
        "pubsub_emulator/node/api/calls.py",
        "pubsub_emulator/node/rpc/author.py",
        "pubsub_emulator/node/rpc/dev_try.py",
        "interchain_events/prism/core/well_formed.py",
        "pubsub_emulator/spark_audit/fetch/chunks.py",
        "pubsub_emulator/spark_audit/history/names.py",
        "pubsub_emulator/spark_audit/history/unpack.py",
    ),
    "files of the user's own: keys, vectors and operations": (
        "interchain_events/distributor/adapter/evm/account.py",
        "pubsub_emulator/laboratory/vectors.py",
        "interchain_events/cli/commands/prism/run.py",
        "pubsub_emulator/runs/run.py",
        "pubsub_emulator/runs/sides.py",
    ),
}


def _parses(called: str) -> bool:
    return called.rsplit(".", 1)[-1] in PARSERS and called not in {"loads", "load"}


def parsing() -> set[str]:
    """The files that call a parser."""
    found = set()
    for path in (path for package in PACKAGES for path in package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _parses(ast.unparse(node.func)):
                found.add(str(path.relative_to(ROOT)))
    return found


def test_a_file_that_parses_is_registered() -> None:
    known = [place for places in OWN.values() for place in places]
    rows = {row.reader.partition("::")[0] for row in all_rows()}
    found = parsing()
    assert not {each for each in found if each not in rows and not each.startswith(tuple(known))}
    for place in known:
        assert (ROOT / place).exists(), place
        assert any(each.startswith(place) for each in found), f"nothing parses in {place}"
