"""Every extra works alone: what its commands need is in it, and without it they name it.

For each extra there is an environment with its distribution and the packages of this extra. In it
each
command that the extra promises does a little of its real work. In an environment without extras
each of them ends with one line that has the one command that installs what is missing. `pubsub
demo` alone is not run: it takes a minute, and is made of `run`, `import-relay-proofs` and `audit`.
"""

import json
import re
import shlex
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from command_reference import leaves
from support.icrc72.wat import canister, method
from support.plumbing.command import TINY
from support.plumbing.packaging import PATIENCE, Environment, Ran, run

from interchain_events.extension import EXTENSION
from pubsub_emulator.cli.base.extras import COVERS, PACKAGES, Command
from pubsub_emulator.cli.exits import FINDINGS, INFRASTRUCTURE, USAGE
from pubsub_emulator.extension import ELSEWHERE

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT, EVENT_PROJECT = (
    tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    for file in (ROOT / "pyproject.toml", ROOT / "interchain_events" / "pyproject.toml")
)
EXTRAS: Final = PROJECT["optional-dependencies"] | EVENT_PROJECT["optional-dependencies"]
EVENTS: Final = "icrc72"
"""The extra of interchain-events that needs no package: the distribution alone."""
SIGNATURES: Final = ROOT / "tests" / "vectors" / "signatures" / "signatures.json"
NOBODY: Final = "ws://127.0.0.1:1"
"""The URL of a node that does not run."""
DATABASE: Final = "postgresql://127.0.0.1:1/nothing"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


class Call(NamedTuple):
    """A command line, and the extras that it needs, joined by commas."""

    extras: str
    words: str


CALLS: Final = (
    Call("audit", "audit history --out out/audit"),
    Call("audit,plot", "audit history --out out/audit --report"),
    Call("spark", "audit history --out out/audit --engine spark"),
    Call("spark", "audit history --out out/audit --master local[1]"),
    Call("audit", "compare history history"),
    Call("audit,plot", "compare history history --plot out/changes"),
    Call("client", f"conform {NOBODY}"),
    Call("audit", "demo --out out/demo"),
    Call("spark", "demo --out out/demo --engine spark"),
    Call("audit", "diff history history"),
    Call("distributor", "distributor adapter alastria"),
    Call("evm", "distributor adapter besu --evm http://127.0.0.1:1"),
    Call("distributor", "distributor serve distributor.toml"),
    Call("spark", "events audit history --log events.db"),
    Call("events,spark", f"events audit history --log {DATABASE}"),
    Call("events", "events serve --log events.db"),
    Call("audit,events", "events serve --log events.db --deliveries out/deliveries"),
    Call("audit", "evidence history"),
    Call("client", f"explore --connect {NOBODY} --out out/node.html"),
    Call("audit", "explore history --out out/history.html"),
    Call("client", f"export-state {NOBODY} out/state.json"),
    Call(
        "audit", f"fetch --node {NOBODY} --network polkadot --chain 1000 --from 1 --out out/fetched"
    ),
    Call("canisters", "icrc72 conform --subscriber mine.wasm"),
    Call("canisters", "icrc72 run subnets.toml"),
    Call("canisters", "icrc72 serve demo"),
    Call("canisters", "icrc72 trace subnets.toml --namespace a.b --event 0"),
    Call("audit", "import-relay-proofs history --out out/imported"),
    Call("audit", "inspect history"),
    Call("node", "lab --no-open"),
    Call("audit", "log follow history --log out/events.db"),
    Call("events", f"log follow {NOBODY} --log out/events.db"),
    Call("events", f"log read --log {DATABASE}"),
    Call("events", f"log rewind 1 --log {DATABASE}"),
    Call("audit", "migrate history"),
    Call("spark", "prism audit history --db prism.db"),
    Call("prism,spark", f"prism audit history --db {DATABASE}"),
    Call("prism", f"prism serve --chain {NOBODY} --db out/prism.db"),
    Call(
        "audit,prism", f"prism serve --chain {NOBODY} --db out/prism.db --deliveries out/deliveries"
    ),
    Call("prism", "prism status 00"),
    Call("prism", "prism submit operations.hex"),
    Call("prism", "prism subscribe --filter create-did"),
    Call("audit", "prove history --top 0x00"),
    Call("client", f"prove {NOBODY} --top 0x00"),
    Call("client", f"prove tiny.toml --request {NOBODY}"),
    Call("client", f"prove tiny.toml --top 0x00 --metadata {NOBODY}"),
    Call("plot", "prove tiny.toml --top 0x00 --plot out/cost.svg"),
    Call("plot", "report history"),
    Call("audit", "run tiny.toml --out out/run --history out/history"),
    Call("audit", "score history history"),
    Call("node", "serve --dev"),
    Call("audit,node", "serve --out out/served"),
    Call("audit", "ship --out out/shipped"),
    Call("audit", "simulate --networks 1 --blocks 1 --out out/many"),
    Call("spark", "simulate --networks 1 --blocks 1 --out out/many --engine spark"),
    Call("sql", "sql history 'SELECT 1'"),
    Call("client", f"step --connect {NOBODY}"),
    Call("client", f"step node --fork {NOBODY}"),
    Call("client", f"step node --fork-para 2000={NOBODY}"),
    Call("prism", "tour"),
    Call("audit", f"vectors check {SIGNATURES}"),
)
"""Every command that needs an extra, in each way that needs another one."""

Environments = Callable[..., Environment]


@pytest.fixture(scope="module")
def environment(site_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Environments:
    """Return the environment with these extras alone, which is made when it is first wanted.

    interchain-events is only in those with an extra of it.
    """

    @cache
    def made(*extras: str) -> Environment:
        fresh = Environment(tmp_path_factory.mktemp("-".join(extras) or "core"))
        wanted = list(PROJECT["dependencies"])
        for extra in extras:
            wanted += EXTRAS[extra]
        fresh.link(wanted)
        fresh.link_wheels(site_packages, "pubsub_emulator")
        if set(extras) & set(EXTENSION.extra_names):
            fresh.link_wheels(site_packages, "interchain_events")
        return fresh

    return made


@pytest.fixture(scope="module")
def command(wheel: Path, event_wheel: Path) -> Callable[..., str]:
    """Return the command that installs extras into an environment, beside the wheels there."""

    def install(environment: Environment, *extras: str) -> str:
        wanted: dict[Path, list[str]] = {}
        for extra in extras:
            file = event_wheel if extra in EXTENSION.extra_names else wheel
            wanted.setdefault(file, []).append(extra)
        requirements = [f"{file}[{','.join(listed)}]" for file, listed in wanted.items()]
        return shlex.join([str(environment.python), "-m", "pip", "install", *requirements])

    return install


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of all commands."""
    made = tmp_path_factory.mktemp("extras")
    (made / "tiny.toml").write_text(TINY)
    return made


@pytest.fixture(scope="module")
def recorded(environment: Environments, folder: Path) -> Path:
    """The folder, with the run of a scenario in `run`, and its audit in `audit`."""
    ended = environment("audit").pubsub(
        ("run", "tiny.toml", "--out", "run"), ("audit", "run/history", "--out", "audit"), cwd=folder
    )
    _expect(ended, 0, FINDINGS)
    return folder


@pytest.fixture(scope="module")
def node(environment: Environments, folder: Path) -> Iterator[str]:
    """The address of a node, without its scheme."""
    words = (
        "serve",
        "--dev",
        "--prism",
        "--dome-events",
        "alastria",
        "--build",
        "interval:200",
        "--port",
        "0",
    )
    nodes = environment("node", EVENTS)  # its pallets are on the relay chain
    with nodes.serving(*words, cwd=folder, says=r"relay chain: ws://(\S+)") as found:
        yield found[1]


def _expect(ended: Iterable[Ran], *codes: int) -> None:
    assert [each.code for each in ended] == list(codes), ended


def _asked(url: str, body: object = None) -> str:
    """Return what a server answers a GET, or a POST of JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310  # our own server
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310  # as above
        return answer.read().decode("utf-8", "replace")


def _receive(url: str) -> None:
    """Subscribe to all events of a server, and receive the first."""
    token = json.loads(_asked(f"{url}/subscriptions", {"filters": [{"any": True}]}))["token"]
    stream_url = f"{url}/events?after=start"
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(stream_url, headers=headers)  # noqa: S310  # our own server
    with urllib.request.urlopen(request, timeout=PATIENCE) as stream:  # noqa: S310  # as above
        assert any(line.startswith(b"data:") for line in stream)


# Without interchain-events


def test_the_emulator_alone_brings_nothing_of_the_event_systems(
    environment: Environments, tmp_path: Path
) -> None:
    bare = environment()
    printed = run(bare.python, "-W", "ignore", "-c", WITHOUT_EVENTS, cwd=tmp_path)
    found, new, old = printed.splitlines()
    assert found == "()"
    assert new == "No module named 'interchain_events'"
    assert old.startswith("pubsub_emulator.prism is now interchain_events.prism, and ")
    assert old.endswith("is not installed: `pip install interchain-events`")
    helped, toured = bare.pubsub(("--help",), ("tour",), cwd=tmp_path)
    _expect((helped, toured), 0, 0)
    listed = {line.split()[0] for line in helped.out.splitlines() if line.startswith("  ")}
    assert not listed & set(EXTENSION.commands)
    assert "PRISM" not in toured.out


WITHOUT_EVENTS: Final = """
from importlib import import_module
from pubsub_emulator.extension import extensions

print(extensions())
for name in ("interchain_events", "pubsub_emulator.prism"):
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_an_event_systems_command_says_in_one_line_what_to_install(
    environment: Environments, tmp_path: Path
) -> None:
    assert dict.fromkeys(EXTENSION.commands, EXTENSION.distribution) == ELSEWHERE
    bare = environment()
    lines = [(name,) for name in EXTENSION.commands]
    ended = bare.pubsub(*lines, ("prism", "serve", "--help"), cwd=tmp_path)
    install = shlex.join([str(bare.python), "-m", "pip", "install", "interchain-events"])
    for (name, *_), (code, out, err) in zip((*lines, ("prism",)), ended, strict=True):
        assert (code, out) == (USAGE, "")
        assert err == (
            f"pubsub: `pubsub {name}` is part of interchain-events, which `{install}` installs"
            " (see pubsub --help)\n"
        )


@pytest.mark.parametrize(
    ("extras", "there"),
    [
        ((), False),
        ((EVENTS,), True),
    ],
)
def test_the_shell_completes_the_commands_of_what_is_installed(
    extras: tuple[str, ...],
    there: bool,
    environment: Environments,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("COMP_WORDS", "pubsub p")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_PUBSUB_COMPLETE", "bash_complete")
    printed = run(environment(*extras).python, "-m", "pubsub_emulator", cwd=tmp_path)
    offered = {line.partition(",")[2] for line in printed.splitlines()}
    assert ("prism" in offered) == there
    assert "proof-snapshot" in offered


# Without extras


def test_each_need_of_each_command_is_tried() -> None:
    for name, command, _ in leaves():
        if (
            not isinstance(command, Command) or name == "experiment"
        ):  # which writes its tables without the extra
            continue
        tried: set[str] = set()
        for call in CALLS:
            if f"{call.words} ".startswith(f"{name} "):
                tried.update(call.extras.split(","))
        tried.update(COVERS[extra] for extra in tried & set(COVERS))
        assert {need.extra for need in command.needs} <= tried, name


def test_the_extras_that_cover_others_have_all_of_their_packages() -> None:
    for extra, other in COVERS.items():
        assert set(EXTRAS[other]) < set(EXTRAS[extra])
    assert set(PACKAGES.values()) < set(PROJECT["optional-dependencies"])
    assert set(EXTENSION.extras.values()) < set(EVENT_PROJECT["optional-dependencies"])
    assert sorted(EXTENSION.extra_names) == sorted(EVENT_PROJECT["optional-dependencies"])


def test_without_an_extra_a_command_names_the_one_installation_that_it_needs(
    environment: Environments, command: Callable[..., str], tmp_path: Path
) -> None:
    bare = environment(EVENTS)
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "history" / "_commits").mkdir(parents=True)
    for name in ("distributor.toml", "events.db", "mine.wasm", "operations.hex", "prism.db"):
        (tmp_path / name).touch()
    (tmp_path / "subnets.toml").write_text(
        (ROOT / "interchain_events/icrc72/scenarios/demo.toml").read_text()
        + '\n[[canister]]\nname = "theirs"\nsubnet = 0\nwasm = "mine.wasm"\n'
    )
    ended = bare.pubsub(*(shlex.split(call.words) for call in CALLS), cwd=tmp_path)
    assert len(ended) == len(CALLS)
    for call, (code, out, err) in zip(CALLS, ended, strict=True):
        install = command(bare, *call.extras.split(","))
        *progress, said = err.splitlines() or [""]
        assert code == INFRASTRUCTURE, (call, code, out, err)
        assert re.fullmatch(
            rf"pubsub: this needs \w+, which `{re.escape(install)}` installs", said
        ), (call, err)
        assert not [line for line in progress if "pip install" in line], err
        assert not out or call.words.startswith("log follow"), (
            call,
            out,
        )  # it says how far the log goes in any case


def test_where_all_but_spark_is_installed_spark_is_named(
    environment: Environments, recorded: Path, command: Callable[..., str]
) -> None:
    audit = environment("audit")
    words = ("audit", "run/history", "--out", "never", "--engine", "spark")
    (ended,) = audit.pubsub(words, cwd=recorded)
    hint = rf"Spark needs py\w+, which `{re.escape(command(audit, 'spark'))}` installs"
    assert ended.code == INFRASTRUCTURE
    assert re.fullmatch(f"pubsub: {hint}", ended.err.splitlines()[-1])
    assert re.fullmatch(f"EngineLost: {hint}\n", run(audit.python, "-c", SESSION, cwd=recorded))


SESSION: Final = """
from pubsub_emulator import spark_audit
try:
    spark_audit.session()
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def test_work_that_needs_no_extra_is_done_and_the_rest_is_named(
    environment: Environments, folder: Path, command: Callable[..., str]
) -> None:
    bare = environment()
    proven, ran, measured = bare.pubsub(
        ("prove", "tiny.toml", "--top", "System.Number", "--para", 3000),
        ("run", "tiny.toml", "--out", "bare"),
        ("experiment", "--sweep", "keys=2", "--set", "spread=2", "--out", "bare-experiment"),
        cwd=folder,
    )
    _expect((proven, ran, measured), 0, 0, 0)
    for ended, extra, words in (
        (ran, "audit", "no history was written: "),
        (measured, "plot", "no plot was drawn: "),
    ):
        assert words in ended.out + ended.err
        assert f"which `{command(bare, extra)}` installs" in ended.out + ended.err


# With one extra


def test_audit(environment: Environments, recorded: Path) -> None:
    relay_proofs = Path(environment("audit").packages / "pubsub_emulator/spark_audit/mainnet")
    ended = environment("audit").pubsub(
        (
            "simulate",
            "--networks",
            1,
            "--blocks",
            20,
            "--seed",
            8,
            "--out",
            "many",
            "--engine",
            "python",
        ),
        ("audit", "many", "--out", "many-audit", "--engine", "python"),
        ("score", "many", "many-audit"),
        ("diff", "run/history", "run/history"),
        ("compare", "run/history", "run/history"),
        ("evidence", "audit"),
        ("inspect", "run/history"),
        ("prove", "run/history", "--top", "Babe.CurrentSlot"),
        ("explore", "run/history", "--out", "history.html"),
        ("migrate", "run/history"),
        ("import-relay-proofs", relay_proofs, "--out", "imported"),
        ("vectors", "check", SIGNATURES),
        (
            "fetch",
            "--export",
            "many",
            "--network",
            "n",
            "--chain",
            1,
            "--from",
            1,
            "--out",
            "fetched",
        ),
        cwd=recorded,
    )
    *done, fetched = ended
    _expect(done, 0, FINDINGS, *[0] * (len(done) - 2))
    assert "no file or folder whose name begins with extrinsics" in fetched.err
    follow = ("log", "follow", "run/history", "--log", "history.db")
    _expect(environment("audit", EVENTS).pubsub(follow, cwd=recorded), 0)


def test_the_packed_program_has_everything_that_audit_workers_need(
    environment: Environments, recorded: Path
) -> None:
    _expect(environment("audit").pubsub(("ship", "--out", "shipped"), cwd=recorded), 0)


def test_plot(environment: Environments, recorded: Path) -> None:
    ended = environment("plot").pubsub(
        ("report", "audit", "--out", "report"),
        (
            "experiment",
            "--sweep",
            "keys=2",
            "--set",
            "spread=2",
            "--cache",
            "none",
            "--out",
            "experiment",
        ),
        ("compare", "run/history", "run/history", "--all", "--plot", "changes"),
        ("prove", "tiny.toml", "--top", "System.Number", "--plot", "cost.svg"),
        cwd=recorded,
    )
    _expect(ended, 0, 0, 0, 0)
    assert (recorded / "cost.svg").is_file()
    assert (recorded / "report" / "report.html").is_file()
    assert (recorded / "experiment" / "pov-by-keys.png").is_file()
    assert (recorded / "changes" / "changes.svg").is_file()


def test_sql(environment: Environments, recorded: Path) -> None:
    (ended,) = environment("sql").pubsub(
        ("sql", "audit", "SELECT COUNT(*) FROM chains", "--json"), cwd=recorded
    )
    assert (ended.code, json.loads(ended.out)["rows"]) == (0, [[2]])


@pytest.fixture(scope="module")
def followed(environment: Environments, folder: Path, node: str) -> Path:
    """The log of the first blocks of the node."""
    words = (
        "follow",
        f"ws://{node}",
        "--from",
        1,
        "--until",
        3,
        "--log",
        "events.db",
        "--network",
        "net",
    )
    _expect(environment("events").pubsub(("log", *words), cwd=folder), 0)
    return folder / "events.db"


def test_spark(environment: Environments, recorded: Path, followed: Path) -> None:
    """All of it in one process: a start of Spark's Java takes seconds."""
    served = ("events", "serve", "--log", followed, "--deliveries", "deliveries", "--port", 0)
    with environment("audit", "events").serving(
        *served, cwd=recorded, says=r"(http://\S+): events"
    ) as found:
        _receive(found[1])
    script = recorded / "on_spark.py"
    script.write_text(ON_SPARK)
    printed = run(environment("spark", EVENTS).python, script, cwd=recorded)
    assert "digest: " in printed
    assert "no event is missing" in printed
    assert "\n2 chains\n" in printed


ON_SPARK: Final = """
import sys
from pubsub_emulator import spark_audit
from pubsub_emulator.cli.main import main

for words in (
    "audit run/history --out on-spark --engine spark",
    "events audit deliveries --log events.db",
):
    sys.argv = ["pubsub", *words.split()]
    try:
        main()
    except SystemExit as leaving:
        assert leaving.code == 1, leaving.code
session = spark_audit.session("on-spark")
spark_audit.register(session)
print(session.sql("SELECT * FROM chains").count(), "chains")
session.stop()
"""


def test_testing(environment: Environments, tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST_TEST)
    printed = run(
        environment("testing").python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path
    )
    assert "2 passed" in printed
    (tmp_path / "test_first.py").write_text(FIRST_TEST_OF_CANISTERS)
    both = environment("testing", EVENTS)
    printed = run(both.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "1 passed" in printed


FIRST_TEST: Final = """
from hypothesis import given, settings
from hypothesis import strategies as st
from pubsub_emulator import key_from_data
from pubsub_emulator.testing.strategies import networks


def test_a_value_arrives(pubsub_network):
    pubsub_network.publish(1000, key_from_data(b"key"), b"7.42", ttl=100)
    [delivery] = pubsub_network.step(3)[-1].deliveries(2000)
    assert delivery.value == b"7.42"


@settings(max_examples=1, deadline=None)
@given(st.data())
def test_a_network_is_drawn(data):
    data.draw(networks()).network().step(1)
"""


FIRST_TEST_OF_CANISTERS: Final = """
def test_subnets_are_made(pubsub_canisters, pubsub_network):
    assert pubsub_canisters.__module__ == "interchain_events.testing.canisters"
"""


def test_client(environment: Environments, folder: Path, node: str) -> None:
    url = f"ws://{node}"
    ended = environment("client").pubsub(
        ("export-state", url, "state.json"),
        ("step", "node", "--fork", "state.json"),
        ("step", "--connect", url),
        ("explore", "--connect", url, "--blocks", 2, "--out", "node.html"),
        ("conform", url, "--rule", "PS-1"),
        ("prove", url, "--top", "System.Number"),
        cwd=folder,
    )
    _expect(ended, 0, 0, 0, 0, 0, 0)


def test_node(environment: Environments, folder: Path, node: str) -> None:
    health = {"jsonrpc": "2.0", "id": 1, "method": "system_health", "params": []}
    assert json.loads(_asked(f"http://{node}", health))["result"]["peers"] == 0
    with environment("node").serving("lab", "--no-open", cwd=folder, says=r"(http://\S+)") as found:
        assert "<html" in _asked(found[1])
    _expect(environment("node").pubsub(("vectors", "check", SIGNATURES), cwd=folder), 0)


def test_events(environment: Environments, folder: Path, followed: Path) -> None:
    events = environment("events")
    read, unreachable = events.pubsub(
        ("log", "read", "--log", followed, "--limit", 1),
        ("log", "read", "--log", DATABASE),
        cwd=folder,
    )
    assert json.loads(read.out)["seq"] == 1
    assert (unreachable.code, "connection failed" in unreachable.err) == (INFRASTRUCTURE, True)
    words = ("events", "serve", "--log", followed, "--port", 0, "--grpc-port", 0)
    with events.serving(*words, cwd=folder, says=r"(http://\S+): events") as found:
        assert _asked(f"{found[1]}/health")


def test_prism(environment: Environments, folder: Path, node: str) -> None:
    prism = environment("prism")
    words = ("prism", "serve", "--chain", f"ws://{node}", "--db", "prism.db", "--port", 0)
    with prism.serving(*words, cwd=folder, says=r"grpc://(\S+): PRISM") as found:
        heard, toured = prism.pubsub(
            (
                "prism",
                "subscribe",
                "--node",
                found[1],
                "--filter",
                "any",
                "--everything",
                "--until-live",
            ),
            ("tour",),
            cwd=folder,
        )
    _expect((heard, toured), 0, 0)
    unreachable, database = prism.pubsub(
        ("prism", "status", "00" * 32, "--node", "127.0.0.1:1"),
        ("prism", "serve", "--chain", f"ws://{node}", "--db", DATABASE),
        cwd=folder,
    )
    assert "failed to connect" in unreachable.err
    assert (database.code, "connection failed" in database.err) == (INFRASTRUCTURE, True)


def test_distributor(environment: Environments, folder: Path, node: str) -> None:
    distributor = environment("distributor")
    adapter = (
        "distributor",
        "adapter",
        "alastria",
        "--node",
        f"ws://{node}",
        "--store",
        "sqlite:a.db",
        "--port",
        0,
    )
    with distributor.serving(*adapter, cwd=folder, says=r"on (http://\S+)", code=0) as found:
        settings = (
            f'public_url = "{found[1]}"\nport = 0\nprivate_endpoints ='
            f' true\n[adapters.alastria]\nurl = "{found[1]}"\n'
        )
        (folder / "distributor.toml").write_text(settings)
        serve = ("distributor", "serve", "distributor.toml")
        with distributor.serving(*serve, cwd=folder, says=r"on (http://\S+)", code=0) as served:
            assert json.loads(_asked(f"{served[1]}/livez"))
    unreachable = [
        (*adapter[:6], store, *adapter[-2:]) for store in ("redis://127.0.0.1:1", DATABASE)
    ]
    redis, postgres = distributor.pubsub(*unreachable, cwd=folder)
    assert "Redis: Error 111 connecting to 127.0.0.1:1" in redis.err
    assert "connection failed" in postgres.err


def test_evm(environment: Environments, folder: Path) -> None:
    words = (
        "distributor",
        "adapter",
        "besu",
        "--evm",
        "http://127.0.0.1:1",
        "--key-env",
        "KEY",
        "--store",
    )
    key = "0x" + "11" * 32
    for ended in environment("evm").pubsub(
        (*words, "sqlite:besu.db"), (*words, DATABASE), cwd=folder, KEY=key
    ):
        assert ended.code == INFRASTRUCTURE, ended
        assert "127.0.0.1:1" in ended.err


def test_icrc72_needs_no_package(environment: Environments, folder: Path) -> None:
    assert EXTRAS["icrc72"] == []
    ended = environment(EVENTS).pubsub(
        ("icrc72", "stories", "--cases", 1, "--no-cheats"),
        ("distributor", "simulate", 1),
        cwd=folder,
    )
    _expect(ended, 0, 0)


def test_canisters(environment: Environments, folder: Path) -> None:
    (folder / "mine.wasm").write_bytes(
        canister(method("update", "icrc72_handle_notification", "nop"))
    )
    canisters = environment("canisters")
    (tried,) = canisters.pubsub(("icrc72", "conform", "--subscriber", "mine.wasm"), cwd=folder)
    assert tried.code in {0, FINDINGS}, tried
    assert "rules hold" in tried.out
    with canisters.serving(
        "icrc72", "serve", "demo", "--port", 0, cwd=folder, says=r"(http://\S+): \d+ subnets"
    ) as found:
        assert _asked(f"{found[1]}/api/v2/status")
