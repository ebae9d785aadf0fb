"""The field's own clients, unmodified, against a node of the bundled scenario: every scenario of
each must hold.

`python3 dev.py clients` runs these; a plain run of the tests leaves them out (tests/conftest.py),
for they come from package indexes. The number at a scenario is its place in docs/node-rules.md.
"""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.node.nodes import serving

from pubsub_emulator.node.server.options import Build

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import install  # noqa: E402  # of this folder

PATIENCE = 600
pytestmark = [pytest.mark.clients, pytest.mark.timeout(PATIENCE + 60)]


def _names(path: Path, pattern: str) -> list[str]:
    return re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)


_JS = r"^  async (\w+)\(url\)"
SCRIPTS = ("pjs", "pjs_further", "papi", "papi_further", "papi_legacy")
SCENARIOS = {
    **{name: _names(HERE / "js" / f"{name}.mjs", _JS) for name in SCRIPTS},
    "si": ["connects", "encodes", "reads", "transfers", "follows"],
    "asi": ["connects", "encodes", "reads", "transfers", "awaits"],
    "subxt": _names(HERE / "rust" / "src" / "main.rs", r'^    told\("(\w+)"'),
}


async def _run(command: list[str | Path], place: Path) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=place,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
    return out.decode(), err.decode()


async def _against_a_node(client: str) -> tuple[str, str]:
    async with serving(build=Build.INSTANT, finality=2 if client == "papi_legacy" else 0) as node:
        url = node.urls[None].rstrip("/")
        if client == "subxt":
            await asyncio.to_thread(install.build_subxt)
            return await _run([install.subxt(), url], HERE)
        if client in install.PYTHONS:
            return await _run(
                [install.python(client), HERE / "python_scenarios.py", client, url], HERE
            )
        place = install.folder("js")
        for script in (HERE / "js").glob("*.mjs"):
            shutil.copy(script, place / script.name)  # where Node finds the packages
        return await _run([install.NODE, f"{client}.mjs", url], place)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What became of each scenario, by client; a client runs when its first scenario is asked
    for.
    """
    install.install()
    return {}


@pytest.mark.parametrize(
    ("client", "scenario"),
    [(client, name) for client, names in SCENARIOS.items() for name in names],
)
def test_a_scenario_holds(client: str, scenario: str, results: dict[str, Any]) -> None:
    if client == "subxt" and install.CARGO is None:
        pytest.skip("subxt is built by cargo, which is not here")
    if client not in results:
        out, err = asyncio.run(_against_a_node(client))
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        results[client] = {line["scenario"]: line for line in lines}, err
    found, said = results[client]
    assert scenario in found, f"{client} did not get to {scenario}: {said[-2000:]}"
    assert found[scenario]["ok"], found[scenario]["detail"]
