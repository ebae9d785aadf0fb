"""`pubsub distributor`: simulating, demonstrating, and serving as processes that end when they are
told to.
"""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from support.distributor.stage import free_port
from support.plumbing.processes import program
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from interchain_events.cli.commands.distributor import command
from interchain_events.distributor.simulation.scenarios import SCENARIOS
from interchain_events.distributor.simulation.stories import event_of


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, arguments)
    return result.exit_code, result.output


def test_a_scenario_is_played_with_one_digest() -> None:
    code, text = run("simulate", "13")
    assert code == 0
    assert run("simulate", "13") == (code, text)
    assert run("simulate", "13", "--seed", "1")[1] != text


def test_every_scenario_is_listed() -> None:
    code, text = run("simulate", "list", "--json")
    assert code == 0
    assert set(json.loads(text[text.index("{") :])["scenarios"]) == {
        str(number) for number in SCENARIOS
    }


def test_stories_end_without_a_surprise() -> None:
    code, text = run("simulate", "stories", "--cases", "3", "--json")
    assert (code, json.loads(text[text.index("{") :])["surprises"]) == (0, {})


@contextmanager
def process(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A command that serves, and its URL."""
    made = subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator", "distributor", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert made.stdout is not None
    assert made.stderr is not None
    try:
        line = made.stdout.readline()
        assert " on http" in line, made.stderr.read() if made.poll() is not None else line
        yield made, line.rpartition(" on ")[2].strip()
    finally:
        if made.poll() is None:
            made.kill()
        made.wait()
        made.stdout.close()
        made.stderr.close()


def ask(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=40) as response:  # noqa: S310
        return response.status, json.loads(response.read())


def config(path: Path, port: int, adapters: dict[str, str]) -> Path:
    lines = [
        f'public_url = "http://127.0.0.1:{port}"',
        f"port = {port}",
        f'store = "sqlite:{path.with_suffix(".db")}"',
    ]
    for name, url in adapters.items():
        lines += [f"[adapters.{name}]", f'url = "{url}"']
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_scenario_17_served_killed_and_started_again_it_publishes_once(tmp_path: Path) -> None:
    port = free_port()
    with (
        process("adapter", "alastria", "--port", "0") as (_, first),
        process("adapter", "hashnet", "--port", "0", "--not-unique") as (_, second),
    ):
        path = config(tmp_path / "ied.toml", port, {"alastria": first, "hashnet": second})
        with process("serve", str(path)) as (made, url):
            wait_for(lambda: ask(f"{url}/health")[1]["status"] == "UP")
            assert ask(f"{url}/api/v2/publishEvent", event_of(1)[1].body())[0] in {201, 202}
            made.send_signal(signal.SIGKILL)
        ask(f"{first}/api/v2/publishEvent", event_of(2)[1].body())
        with process("serve", str(path)) as (made, url):
            for adapter in (first, second):
                wait_for(
                    lambda adapter=adapter: len(ask(f"{adapter}/api/v2/events?all=true")[1]) == 2
                )  # type: ignore[misc]
            assert ask(f"{url}/api/v2/publishEvent", event_of(1)[1].body())[0] == 200
            assert len(ask(f"{first}/api/v2/subscribe")[1]) == 1
            made.send_signal(signal.SIGTERM)
            assert made.wait(20) == 0


def wait_for(holds: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


ADAPTER = '[adapters.a]\nurl = "http://h"\n'
SETTINGS = {
    "nothing": "",
    "no adapter": 'public_url = "http://h"\n',
    "a misspelt field": f'public_url = "http://h"\nstor = 1\n{ADAPTER}',
    "a wrong name": f'public_url = "http://h"\n{ADAPTER.replace("s.a", "s.A")}',
    "a host that others can reach": f'public_url = "http://h"\nhost = "192.0.2.1"\n{ADAPTER}',
    "a token that is not there": f'public_url = "http://h"\n{ADAPTER}token_env = "NO_SUCH"\n',
    "a store of another kind": f'public_url = "http://h"\nstore = "mysql:x"\n{ADAPTER}',
    "not TOML": "public_url = \n",
}
"""Settings that `distributor serve` does not take."""
OPTIONS = {
    "--evm http://127.0.0.1:1": 2,
    "--evm http://127.0.0.1:1 --key-env NONE": 2,
    "--evm http://127.0.0.1:1 --node ws://127.0.0.1:1": 2,
    "--evm http://127.0.0.1:1 --contract 0x12": 2,
    "--evm http://127.0.0.1:1 --finality 101": 2,
    "--evm http://127.0.0.1:1 --key-env EVM_KEY --store memory:": 2,
    "--evm http://127.0.0.1:1 --key-env EVM_KEY": 4,
    "--evm ftp://127.0.0.1:1 --key-env EVM_KEY": 2,
    "--key-env EVM_KEY": 2,
}
"""Options of an adapter that are refused, with the exit codes."""


def test_settings_and_options_that_cannot_be_used_are_refused(
    transcript: Transcript, snapshot: Snapshot
) -> None:
    for case, text in SETTINGS.items():
        (transcript.folder / "ied.toml").write_text(text, encoding="utf-8")
        transcript.note(f"# {case}")
        transcript.refuse("pubsub distributor serve ied.toml")
    for options, code in OPTIONS.items():
        store = "" if "--store" in options else "--store sqlite:a.db "
        line = f"pubsub distributor adapter a --port 0 {store}{options}"
        transcript.refuse(line, code=code, EVM_KEY="01" * 32)
    for scenario in ("0", "34", "nothing", "-"):
        transcript.refuse(f"pubsub distributor simulate {scenario}")
    snapshot("refused-distributors", str(transcript))


def test_what_distributor_commands_print(transcript: Transcript, snapshot: Snapshot) -> None:
    for arguments in ("simulate list", "simulate 13", "simulate stories --cases 3", "demo"):
        transcript.run(f"pubsub distributor {arguments}")
    snapshot("distributor", str(transcript))


class _EvmNode(http.server.BaseHTTPRequestHandler):
    """A node that knows no method of Substrate."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        words = f"The method {asked['method']} does not exist/is not available"
        answer = {
            "jsonrpc": "2.0",
            "id": asked["id"],
            "error": {"code": -32601, "message": words},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_an_adapter_refuses_the_node_of_an_evm_chain_in_one_line() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _EvmNode) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            done = program("distributor", "adapter", "a", "--port", "0", "--node", url)
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "this is not a node of a Substrate chain (system_name: The method" in line
    assert "for a node of an EVM chain use --evm" in line
