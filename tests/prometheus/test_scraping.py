"""Prometheus scrapes a distributor and evaluates the rules: `dev.py prometheus`.

The programs are those that `install.py` has fetched, or those of the machine.
"""

import asyncio
import shutil
from pathlib import Path
from urllib.parse import urlencode

from support.distributor.stage import Stage, free_port, stage, until

PROGRAMS = Path(__file__).parents[2] / ".venv" / "prometheus" / "usr" / "bin"
MONITORING = Path(__file__).parents[2] / "examples" / "distributor" / "monitoring"


async def _busy(made: Stage) -> None:
    """Publish and notify, so that each figure has a value."""
    await made.subscribe()
    await made.publish()
    await until(lambda: bool(made.inbox.got))


def _program(name: str) -> str:
    """Return the path of a program. Fails if it is missing: this job exists to run it."""
    fetched = PROGRAMS / name
    found = str(fetched) if fetched.exists() else shutil.which(name)
    assert found, f"{name} is missing; run python3 dev.py prometheus"
    return found


async def _run(name: str, *arguments: str) -> str:
    """Run a program to its end and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        _program(name), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def test_promtool_takes_the_rules_and_the_configuration() -> None:
    found = asyncio.run(_run("promtool", "check", "config", str(MONITORING / "prometheus.yml")))
    assert "7 rules found" in found


def test_promtool_takes_the_metrics(tmp_path: Path) -> None:
    async def play() -> None:
        async with stage(tmp_path) as made:
            await _busy(made)
            text = (await made.ask("GET", "/metrics"))[1]
            process = await asyncio.create_subprocess_exec(
                _program("promtool"),
                "check",
                "metrics",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            out, _ = await process.communicate(text.encode())
            assert process.returncode == 0, out.decode()

    asyncio.run(play())


def test_prometheus_scrapes_a_distributor_and_evaluates_the_rules(tmp_path: Path) -> None:
    async def play() -> None:
        async with stage(tmp_path) as made:
            await _busy(made)
            port = free_port()
            config = (MONITORING / "prometheus.yml").read_text()
            config = config.replace("127.0.0.1:8090", made.url.removeprefix("http://"))
            (tmp_path / "prometheus.yml").write_text(config.replace("15s", "1s"))
            shutil.copy(MONITORING / "rules.yml", tmp_path)
            process = await asyncio.create_subprocess_exec(
                _program("prometheus"),
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            )
            try:
                url = f"http://127.0.0.1:{port}/api/v1"
                query = urlencode({"query": 'ied_adapter_up{network="a"}'})
                await _until(made, f"{url}/query?{query}", _has_value)
                await _until(made, f"{url}/rules", _are_healthy)
            finally:
                process.terminate()
                await process.wait()

    asyncio.run(play())


def _has_value(data: dict[str, object]) -> bool:
    found = data["result"]
    return isinstance(found, list) and bool(found) and found[0]["value"][1] == "1"


def _are_healthy(data: dict[str, object]) -> bool:
    """Whether all rules were evaluated, and none of them fires."""
    groups = data["groups"]
    rules = (
        [rule for group in groups for rule in group["rules"]] if isinstance(groups, list) else []
    )
    return len(rules) == 7 and all(
        rule["health"] == "ok" and rule["state"] == "inactive" for rule in rules
    )


async def _until(made: Stage, url: str, holds: object) -> None:
    """Ask Prometheus until an answer is as it should be."""
    assert callable(holds)
    async with asyncio.timeout(60):
        while True:
            try:
                async with made.http.get(url) as response:
                    found = await response.json()
            except OSError:
                found = {"status": "starting"}
            if found["status"] == "success" and holds(found["data"]):
                return
            await asyncio.sleep(0.2)
