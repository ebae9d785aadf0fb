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
from support.limits import PROBES, limits, most
from support.processes import ROOT, environment

from pubsub_emulator.cli.commands.fuzz.readers import ROWS, Row
from pubsub_emulator.cli.commands.fuzz.targets import ALL

PACKAGE = ROOT / "pubsub_emulator"
TESTS = ROOT / "tests"
STORIES = {"liveness", "icrc"}
"""Targets that play stories and read no file."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what)
def test_a_row_names_code_that_is_there(row: Row) -> None:
    path, _, names = row.reader.partition("::")
    tree: ast.AST = ast.parse((PACKAGE / path).read_text("utf-8"))
    for name in names.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        tree = next(
            each for each in ast.walk(tree) if isinstance(each, kinds) and each.name == name
        )


def test_every_target_has_a_row_and_every_row_a_target() -> None:
    assert {row.target for row in ROWS if row.target} == {target.name for target in ALL} - STORIES


def test_a_limit_is_used_where_it_is_said_to_hold() -> None:
    """Somewhere in the package the constant is read, not only defined."""
    read = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in PACKAGE.rglob("*.py")
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
    above, _, leaf = f"pubsub_emulator.{module}".rpartition(".")
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
    command = [sys.executable, "-m", "support.limits"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), cwd=ROOT, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.communicate()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.xdist_group("limits")
@pytest.mark.parametrize("constant", PROBES)
def test_one_input_at_the_limit_is_read_and_one_beyond_it_is_refused_in_bounded_memory(
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
    assert found["beyond"]["said"].startswith("pubsub_emulator."), found


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
        "distributor/adapter/desk.py distributor/adapter/evm/ledger.py distributor/core/"
        " distributor/simulation/ distributor/service/http.py distributor/service/openapi.py"
        " events/values.py icrc72/keys.py icrc72/conformance/probes.py icrc72/ic/stable.py"
        " spark_audit/audit/ spark_audit/engine/ spark_audit/judge/task.py"
        " spark_audit/judge/units.py spark_audit/judge/results.py spark_audit/simulate/"
        " spark_audit/spark/ spark_audit/tables/ spark_audit/deliveries/ node/local.py"
        " emulator/extras.py explorer/live.py laboratory/mutation.py laboratory/targets.py"
        " cli/commands/fuzz/ testing/proof_sizes.py"
    ),
    "the state of a chain, whose root was checked": (
        "runtime/ node/types/ primitives/pubsub.py icrc72/ic/candid/ "
        "spark_audit/judge/imported.py cli/commands/explore/node.py"
    ),
    "the parsers themselves, and what they are made of": (
        "emulator/untrusted.py primitives/ trie/decoded.py"
    ),
    "a row's reader, called by its name, or bytes that such a reader bounded": (
        "cli/commands/evidence/run.py cli/commands/explore/sources.py cli/commands/icrc72/run.py"
        " cli/commands/prove/sources.py"
        " cli/commands/replay/run.py cli/inspect/kinds.py cli/inspect/parquet.py"
        " cli/session/inspection.py cli/session/network_commands.py client/answers.py"
        " client/decode.py distributor/service/access.py distributor/service/problems.py"
        " distributor/service/requests.py events/log/sources/rpc.py events/subscriptions/sse.py"
        " laboratory/novelty.py laboratory/verifier.py node/api/calls.py node/rpc/author.py"
        " node/rpc/dev_try.py prism/core/well_formed.py spark_audit/fetch/chunks.py"
        " spark_audit/history/names.py spark_audit/history/unpack.py"
    ),
    "files of the user's own: keys, vectors and operations": (
        "distributor/adapter/evm/account.py cli/commands/vectors/run.py cli/commands/prism/run.py"
        " cli/commands/run/run.py cli/commands/compare/run.py"
    ),
}


def _parses(called: str) -> bool:
    return called.rsplit(".", 1)[-1] in PARSERS and called not in {"loads", "load"}


def parsing() -> set[str]:
    """The files that call a parser."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _parses(ast.unparse(node.func)):
                found.add(str(path.relative_to(PACKAGE)))
    return found


def test_a_file_that_parses_is_registered() -> None:
    known = [place for places in OWN.values() for place in places.split()]
    rows = {row.reader.partition("::")[0] for row in ROWS}
    found = parsing()
    assert not {each for each in found if each not in rows and not each.startswith(tuple(known))}
    for place in known:
        assert (PACKAGE / place).exists(), place
        assert any(each.startswith(place) for each in found), f"nothing parses in {place}"
