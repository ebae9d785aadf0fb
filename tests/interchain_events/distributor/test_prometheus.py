"""The rules and the dashboard of Prometheus ask for figures that a distributor serves."""

import asyncio
import json
import re
from pathlib import Path

from support.distributor.stage import Stage, played, until

MONITORING = Path(__file__).parents[3] / "examples" / "distributor" / "monitoring"
_NAME = re.compile(r"\bied_[a-z_]+")
_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def asked() -> set[str]:
    """The names of all figures that the rules and the dashboard ask for."""
    texts = [(MONITORING / "rules.yml").read_text()]
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        texts += [target["expr"] for target in panel["targets"]]
    return {_SUFFIX.sub("", name) for text in texts for name in _NAME.findall(text)}


async def _busy(made: Stage) -> None:
    """Publish and notify, so that each figure has a value."""
    await made.subscribe()
    await made.publish()
    await until(lambda: bool(made.inbox.got))


@played()
async def test_rules_and_dashboard_ask_for_figures_that_are_served(made: Stage) -> None:
    await _busy(made)
    names = asked()
    assert len(names) > 10

    def served(text: str) -> set[str]:
        return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))

    async with asyncio.timeout(30):
        while names - served((await made.ask("GET", "/metrics"))[1]):  # noqa: ASYNC110  # it does not tell of itself
            await asyncio.sleep(0.1)
