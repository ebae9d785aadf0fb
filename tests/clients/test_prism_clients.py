"""PRISM's clients that others generate from `prism.proto`, in other languages, against a node with
TLS and tokens.

Each subscribes with every filter, resumes by id and by cursor, cancels, follows a status, schedules
an operation. What it sees is what the client in Python sees.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from support.plumbing.certificates import certificate
from support.prism.prism_chain import Branches, Running, running
from support.prism.wallet import Wallet

from interchain_events.events.log.sql_store import open_store
from interchain_events.events.subscriptions.callers import Callers
from interchain_events.events.subscriptions.grpc_server import Tls
from interchain_events.prism.client import encode_filter
from interchain_events.prism.core.filters import OWNERS, Filter, FilterType
from interchain_events.prism.core.messages import AddService, Service
from interchain_events.prism.core.process import Status
from pubsub_emulator.primitives.hashing import token_hash

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import install  # noqa: E402  # of this folder

PATIENCE = 300
TOKEN = "a caller's token"  # noqa: S105  # of this test
HASH = bytes(32)
pytestmark = [pytest.mark.clients, pytest.mark.timeout(PATIENCE + 60)]


def _filters(wallet: Wallet, batch_id: str) -> list[Filter]:
    credential = FilterType.REVOKE_CREDENTIAL_FILTER
    listed = [
        Filter(kind, wallet.suffix if kind in OWNERS else None)
        for kind in FilterType
        if kind != credential
    ]
    any_ = FilterType.ANONYMOUS_ANY_FILTER
    return [
        *listed,
        Filter(credential, None, HASH),
        Filter(credential, None, HASH, batch_id),
        Filter(any_, status=Status.APPLIED),
        Filter(any_, status=Status.REJECTED),
    ]


async def _ids(node: Running, filters: list[Filter]) -> list[str]:
    found: list[str] = []
    async for message in node.client.events(await node.client.subscribe(filters, everything=True)):
        found += [each.operation_id.hex() for each in message.events]
        if message.live:
            break
    return found


async def _saw(command: list[str], folder: Path) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2_000:]
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {line["scenario"]: line["saw"] for line in lines}


async def _play(program: list[str], tls: Tls, folder: Path) -> None:
    wallet = Wallet("a", stores=True)
    other, later = map(Wallet, "bc")
    batch = wallet.issue(HASH)
    update = wallet.update(AddService(Service("s", "T", "a:b")))
    stale = wallet.update(AddService(Service("t", "T", "a:b")), previous=HASH)
    filters = _filters(wallet, batch.batch_id)
    requests = folder / "requests.json"
    listed = [MessageToDict(encode_filter(each)) for each in filters]
    asked = {"filters": listed, "operation": update.id.hex(), "schedule": later.created.raw.hex()}
    requests.write_text(json.dumps(asked), encoding="utf-8")
    log = open_store(str(folder / "prism.db"), "net")
    callers = Callers({token_hash(TOKEN): "me"})
    given = {"token": TOKEN, "roots": tls.certificate.read_bytes()}
    async with running(log, Branches(), callers=callers, tls=tls, **given) as node:
        node.chain.anchor_now(wallet.created, other.created, update, stale)
        number = node.chain.anchor_now(
            batch.signed, wallet.revoke(batch, HASH), wallet.revoke(batch), wallet.store(b"x")
        )
        await node.processed(number)
        due: dict[str, Any] = {
            f"filter {at}": await _ids(node, [each]) for at, each in enumerate(filters)
        }
        whole = await _ids(node, filters)
        assert all(due.values())
        assert len(whole) == 8
        saw = await _saw(
            [*program, node.address, str(tls.certificate), TOKEN, str(requests)], folder
        )
    log.close()
    assert saw == due | {
        "all filters": whole,
        "resumes by id": whole[2:],
        "resumes by cursor": whole[1:],
        "since the subscription": [],
        "cancels": ["CANCELLED", "NOT_FOUND"],
        "is asked for its token": "UNAUTHENTICATED",
        "follows a status": ["APPROVED"],
        "schedules and cancels": [later.created.id.hex(), "FAILED_PRECONDITION", "OK"],
    }


def _typescript(folder: Path, *, newest: bool = False) -> list[str]:
    return [str(install.NODE), str(install.build_prism_ts(folder, newest=newest))]


def _java(_folder: Path, *, newest: bool = False) -> list[str]:
    if install.MAVEN is None:
        pytest.skip("the client in Java is built by Maven, which is not here")
    built = install.build_prism_java(newest=newest)
    return ["java", "-cp", f"{built / 'classes'}:{built / 'dependency'}/*", "Client"]


BUILDS = [
    pytest.param(
        build, newest, id=f"{build.__name__.removeprefix('_')}-{'newest' if newest else 'pinned'}"
    )
    for build, name in ((_typescript, "prism_ts"), (_java, "prism_java"))
    for newest in (False, True)
    if not newest or install.folder(name, newest=True).exists()
]
"""Builds with the newest packages are tested where `dev.py clients --newest` has fetched them."""


@pytest.mark.parametrize(("build", "newest"), BUILDS)
def test_a_generated_client_sees_what_ours_sees(
    build: Callable[..., list[str]], newest: bool, tmp_path: Path
) -> None:
    program = build(tmp_path, newest=newest)
    asyncio.run(_play(program, certificate(tmp_path), tmp_path))
