"""PR-70, PR-71: DID documents and their resolution over HTTP.

Expected results are those of others: the documents that FabioPinheiro/prism-vdr has of mainnet
(`mainnet/diddoc`), which embed their keys and name them once more as `kid`; the statuses, forms and
documents of neoprism's tests (hyperledger-identus/neoprism, lib/did-resolver-http/tests and
lib/did-prism/tests/did_doc.rs, commit d6ad1eca); and a key that a credential of Identus's cloud
agent states beside the long-form DID that has it.
"""

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.distributor.stage import free_port
from support.plumbing.certificates import certificate
from support.plumbing.processes import ROOT, environment
from support.prism.prism_log import Chain
from support.prism.wallet import DOCUMENT, Wallet, add, secret
from yarl import URL

from interchain_events.database.database import Database
from interchain_events.database.opening import open_database
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.subscriptions.callers import EVERYBODY, Callers
from interchain_events.prism import create_did
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.identifiers import METHOD
from interchain_events.prism.core.messages import Usage
from interchain_events.prism.make import Signed, sign
from interchain_events.prism.service.resolver import _MOST_RANGES, PATH, media_type, serve_resolver
from interchain_events.prism.tables.processor import Processor
from interchain_events.prism.tables.resolver import MOST_CACHED, Resolver
from pubsub_emulator.primitives.hashing import token_hash
from pubsub_emulator.serving.listening import MOST_LINE

MAINNET = {each["name"]: each for each in DOCUMENT["histories"]}["mainnet-mixed"]
DIDCOMM = f"{METHOD}35fbaf7f8a68e927feb89dc897f4edc24ca8d7510261829e4834d931e947e6ca"
"""A DID of mainnet with keys and a service."""
WALLET = "http://localhost:3000"
"""The origin of a page."""
ONLY_VDR = f"{METHOD}e3b675023ef13a2bd1b015a6b1c88d2bfbfbb09bed5b675598397aec361f0d6e"
"""A DID of mainnet with a master key and one of usage VDR."""
ARCHIVED: dict[str, Any] = {
    "id": DIDCOMM,
    "authentication": [
        {
            "id": f"{DIDCOMM}#auth",
            "controller": DIDCOMM,
            "type": "JsonWebKey2020",
            "publicKeyJwk": {
                "kty": "OKP",
                "crv": "Ed25519",
                "x": "JkZ2-tt2Q091zPxRMSzWpWFUduMqSB1bYPTmDOY7IPo",
            },
        }
    ],
    "keyAgreement": [
        {
            "id": f"{DIDCOMM}#comm",
            "controller": DIDCOMM,
            "type": "JsonWebKey2020",
            "publicKeyJwk": {
                "kty": "OKP",
                "crv": "X25519",
                "x": "GR1b4iWk8MbEYU3LxVZc5YKMP-UILmLbdnMlNPVHxyM",
            },
        }
    ],
    "service": [
        {
            "id": f"{DIDCOMM}#didcomm",
            "type": "DIDCommMessaging",
            "serviceEndpoint": {"uri": "https://discord.fabiopinheiro.com"},
        }
    ],
}
"""The document of the archive, without `kid`."""
CREDENTIAL_SUBJECT = (
    f"{METHOD}73bb516fe88beec5b3b8d283eaec5964d1c13cd54ef8f1784217f4fe42688626:CtQBCtEBEkgKFG15LWF1"
    "dGgta2V5LW1pZG5pZ2h0EARKLgoJc2VjcDI1NmsxEiECS0kj3ydSeF86LU9BpHuVntMFN8SCKcHyci1tXFbRW8MSOwoHbW"
    "FzdGVyMBABSi4KCXNlY3AyNTZrMRIhAimWDggNDswAIJWKbexkfDxV0PEa58tcVcS1dk2phkDjGkgKDmFnZW50LWJhc2Ut"
    "dXJsEhBMaW5rZWRSZXNvdXJjZVYxGiRodHRwOi8vMTkyLjE2OC4xLjg2OjgzMDAvY2xvdWQtYWdlbnQ"
)
SUBJECT_KEY = {
    "kty": "EC",
    "crv": "secp256k1",
    "x": "S0kj3ydSeF86LU9BpHuVntMFN8SCKcHyci1tXFbRW8M",
    "y": "dux8h-QcIA3aZG9CSPIltDwVvOkf0kfJRJLH7K1KSlQ",
}
WHOLE = "application/did-resolution"
EVERY_USAGE = {
    name: (usage, secret(name))
    for name, usage in (
        ("master-0", Usage.MASTER_KEY),
        ("issue-0", Usage.ISSUING_KEY),
        ("ka-0", Usage.KEY_AGREEMENT_KEY),
        ("auth-0", Usage.AUTHENTICATION_KEY),
        ("rev-0", Usage.REVOCATION_KEY),
        ("ci-0", Usage.CAPABILITY_INVOCATION_KEY),
        ("cd-0", Usage.CAPABILITY_DELEGATION_KEY),
        ("vdr-0", Usage.VDR_KEY),
    )
}


@pytest.fixture
def database(database_place: str) -> Iterator[Database]:
    made = open_database(database_place)
    yield made
    made.close()


def processed(database: Database) -> tuple[Chain, Processor]:
    chain = Chain(MemoryStore("net"))
    return chain, Processor(database, chain.log, depth=0)


def test_pr_70_documents_of_mainnet_are_those_of_the_archive(database: Database) -> None:
    chain, processor = processed(database)
    for block in MAINNET["blocks"]:
        chain.build(*map(bytes.fromhex, block["objects"]))
    processor.run()
    resolver = Resolver(database)
    found = resolver.resolve(DIDCOMM).document
    assert found is not None
    methods = {each["id"]: each for each in found["verificationMethod"]}
    embedded = {
        name: [methods[each] for each in found[name]] for name in ("authentication", "keyAgreement")
    }
    assert {"id": found["id"], **embedded, "service": found["service"]} == ARCHIVED
    assert len(methods) == 2
    vdr = resolver.resolve(ONLY_VDR)
    assert vdr.document is not None
    assert (vdr.document["verificationMethod"], vdr.document["authentication"]) == ([], [])
    assert vdr.metadata["versionId"] == ONLY_VDR.removeprefix(METHOD)


def test_pr_70_a_long_form_that_no_chain_has_tells_its_state(database: Database) -> None:
    processed(database)
    result = Resolver(database).resolve(CREDENTIAL_SUBJECT)
    assert result.document is not None
    assert result.document["id"] == CREDENTIAL_SUBJECT
    (method,) = result.document["verificationMethod"]
    assert method["publicKeyJwk"] == SUBJECT_KEY
    assert method["id"] == f"{CREDENTIAL_SUBJECT}#my-auth-key-midnight"
    assert result.metadata == {
        "deactivated": False,
        "versionId": "73bb516fe88beec5b3b8d283eaec5964d1c13cd54ef8f1784217f4fe42688626",
    }


@pytest.mark.parametrize("case", DOCUMENT["long_form_dids"], ids=lambda each: each["did_suffix"])
def test_pr_70_a_long_form_resolves_if_a_chain_would_take_it(
    case: dict[str, Any], tmp_path: Path
) -> None:
    database = open_database(str(tmp_path / "prism.db"))
    processed(database)
    name = f"{METHOD}{case['did_suffix']}:{case['encoded_state']}"
    result = Resolver(database).resolve(name)
    assert (result.document is not None) is case["well_formed"]
    assert (result.error is None) is case["well_formed"]
    database.close()


def test_pr_70_each_usage_has_its_relationship_and_inactive_parts_are_left_out(
    database: Database,
) -> None:
    chain, processor = processed(database)
    services = [
        m.Service("svc-1", "LinkedDomains", "https://example.com"),
        m.Service("svc-json", "LinkedDomains", '{"foo": "bar", "n": 1e999}'),
        m.Service("svc-multi", '["TypeA","TypeB"]', '["https://a.com",{"uri": "https://b.com"}]'),
    ]
    made = create_did(EVERY_USAGE, services, ["https://example.com/context/v1"])
    chain.anchor(made)
    processor.run()
    resolver = Resolver(database)
    name = METHOD + made.suffix
    found = resolver.resolve(name).document
    assert found is not None
    assert found["@context"] == ["https://www.w3.org/ns/did/v1", "https://example.com/context/v1"]
    assert [each["id"] for each in found["verificationMethod"]] == [
        f"{name}#{key}" for key in ("issue-0", "ka-0", "auth-0", "ci-0", "cd-0")
    ]
    for relationship, key in (
        ("authentication", "auth-0"),
        ("assertionMethod", "issue-0"),
        ("keyAgreement", "ka-0"),
        ("capabilityInvocation", "ci-0"),
        ("capabilityDelegation", "cd-0"),
    ):
        assert found[relationship] == [f"{name}#{key}"]
    assert [each["serviceEndpoint"] for each in found["service"]] == [
        "https://example.com",
        {"foo": "bar", "n": "1e999"},
        ["https://a.com", {"uri": "https://b.com"}],
    ]
    assert found["service"][2]["type"] == ["TypeA", "TypeB"]
    json.dumps(found, allow_nan=False)

    removed = m.UpdateDID(
        made.hash,
        made.suffix,
        (
            m.UpdateDIDAction(m.RemoveKey("auth-0")),
            m.UpdateDIDAction(m.RemoveService("svc-1")),
        ),
    )
    chain.anchor(sign(removed, "master-0", EVERY_USAGE["master-0"][1]))
    processor.run()
    found = resolver.resolve(name).document
    assert found is not None
    assert found["authentication"] == []
    assert [each["id"] for each in found["service"]] == [f"{name}#svc-json", f"{name}#svc-multi"]


def test_pr_70_metadata_tells_times_version_and_canonical_id(database: Database) -> None:
    chain, processor = processed(database)
    wallet = Wallet("a", stores=True)
    chain.anchor(wallet.created)
    chain.anchor(wallet.update(add("s")))
    # Operations that do not change the DID are no new version.
    chain.anchor(wallet.store(b"x"), wallet.update(add("t"), previous=bytes(32)))
    processor.run()
    resolver = Resolver(database)
    told = {
        "created": "1970-01-01T00:00:06Z",
        "updated": "1970-01-01T00:00:12Z",
        "deactivated": False,
        "versionId": wallet.last.hex(),
    }
    assert resolver.resolve(METHOD + wallet.suffix).metadata == told
    canonical = {"canonicalId": METHOD + wallet.suffix}
    assert resolver.resolve(wallet.created.did).metadata == told | canonical
    ended = wallet.deactivate()
    chain.anchor(ended)
    processor.run()
    result = resolver.resolve(wallet.created.did)
    assert (result.document, result.error) == (None, None)
    assert result.metadata == told | canonical | {
        "deactivated": True,
        "updated": "1970-01-01T00:00:24Z",
        "versionId": ended.hash.hex(),
    }
    chain.back_to(3)
    processor.run()
    assert resolver.resolve(METHOD + wallet.suffix).metadata == told


def test_pr_70_the_cache_is_bounded_and_never_stale(database: Database) -> None:
    chain, processor = processed(database)
    wallets = [Wallet(name) for name in "abcd"]
    chain.anchor(*(each.created for each in wallets))
    processor.run()
    assert Resolver(database)._size == MOST_CACHED
    resolver = Resolver(database, most_cached=2)
    for wallet in wallets:
        assert resolver.resolve(METHOD + wallet.suffix).document is not None
    assert len(resolver._cache) == 2
    chain.anchor(*(each.update(add("s")) for each in wallets))
    processor.run()
    for wallet in wallets:
        found = resolver.resolve(METHOD + wallet.suffix).document
        assert found is not None
        assert len(found["service"]) == 1
    assert len(resolver._cache) == 2


def test_pr_70_a_time_beyond_all_calendars_is_the_last_of_them(database: Database) -> None:
    chain, processor = processed(database)
    chain.anchor(Wallet("a").created)
    processor.run()
    with database.transaction(write=True) as session:
        session.run("UPDATE atala_operations SET block_time = ?", (2**63 - 1,))
    result = Resolver(database).resolve(METHOD + Wallet("a").suffix)
    assert result.metadata["created"] == "9999-12-31T23:59:59Z"


# PR-71

ACTIVE, ENDED = Wallet("a"), Wallet("b")
NOWHERE = f"{METHOD}{'0' * 64}"
ERROR = "https://www.w3.org/ns/did#"
ASKED: list[tuple[str, str | None, int, str, str | None]] = [
    # The DID, `Accept`, the status, the content type, and the error.
    (METHOD + ACTIVE.suffix, None, 200, "application/did", None),
    (METHOD + ACTIVE.suffix, "*/*", 200, "application/did", None),
    (METHOD + ACTIVE.suffix, "application/did", 200, "application/did", None),
    (METHOD + ACTIVE.suffix, "application/json", 200, "application/json", None),
    (METHOD + ACTIVE.suffix, WHOLE, 200, WHOLE, None),
    (METHOD + ACTIVE.suffix, "text/html,application/json,*/*", 200, "application/json", None),
    (METHOD + ACTIVE.suffix, "application/did+ld+json", 200, "application/did+ld+json", None),
    (ACTIVE.created.did, None, 200, "application/did", None),
    (Wallet("c").created.did, None, 200, "application/did", None),
    ("not-a-did", None, 400, WHOLE, "INVALID_DID"),
    (METHOD + "abc", None, 400, WHOLE, "INVALID_DID"),
    (METHOD + ACTIVE.suffix + "%23key-1", None, 400, WHOLE, "INVALID_DID"),
    (METHOD + ACTIVE.suffix + "%3Fservice=abc", None, 400, WHOLE, "INVALID_DID"),
    (METHOD + ACTIVE.suffix + "?versionId=1", None, 400, WHOLE, "INVALID_OPTIONS"),
    (METHOD + ACTIVE.suffix + "?anything=1", None, 200, "application/did", None),
    (NOWHERE, None, 404, WHOLE, "NOT_FOUND"),
    (NOWHERE, WHOLE, 404, WHOLE, "NOT_FOUND"),
    (NOWHERE, "application/json", 404, WHOLE, "NOT_FOUND"),
    (METHOD + ENDED.suffix, None, 410, WHOLE, None),
    (METHOD + ENDED.suffix, "application/json", 410, WHOLE, None),
    ("did:example:abc", None, 501, WHOLE, "METHOD_NOT_SUPPORTED"),
    (METHOD + ACTIVE.suffix, "text/html", 406, WHOLE, "REPRESENTATION_NOT_SUPPORTED"),
    (METHOD + ACTIVE.suffix, "application/json;q=0", 406, WHOLE, "REPRESENTATION_NOT_SUPPORTED"),
]


def test_pr_71_statuses_and_forms_are_those_of_the_universal_resolver(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "prism.db"))
    chain, processor = processed(database)
    chain.anchor(ACTIVE.created, ENDED.created, ENDED.deactivate())
    processor.run()

    async def ask() -> None:
        async with (
            serve_resolver(Resolver(database), "127.0.0.1", 0, origins=(WALLET,)) as url,
            aiohttp.ClientSession(skip_auto_headers=["Accept"]) as session,
        ):
            assert url.endswith(PATH)
            for origin, status in ((WALLET, 200), ("http://localhost:3001", 403)):
                sent = {"Origin": origin}
                async with session.get(url + METHOD + ACTIVE.suffix, headers=sent) as answer:
                    assert answer.status == status
                    allowed = answer.headers.get("Access-Control-Allow-Origin")
                    assert allowed == (origin if status == 200 else None)
            for name, accept, status, content_type, error in ASKED:
                headers = {} if accept is None else {"Accept": accept}
                async with session.get(URL(url + name, encoded=True), headers=headers) as answer:
                    found = json.loads(await answer.text())
                    shown = (answer.status, answer.headers["Content-Type"])
                assert shown == (status, content_type), name
                if content_type != WHOLE:
                    assert found["id"] == name.partition("?")[0]
                    continue
                about = found["didResolutionMetadata"].get("error")
                assert (about and about["type"]) == (error and ERROR + error), name
                assert (found["didDocument"] is None) == (status != 200)
            percent = (METHOD + ACTIVE.suffix).replace(":", "%3A")
            async with session.get(URL(url + percent, encoded=True)) as answer:
                assert (await answer.json(content_type=None))["id"] == METHOD + ACTIVE.suffix
            old = 'application/ld+json;profile="https://w3id.org/did-resolution"'
            async with session.get(url + METHOD + ACTIVE.suffix, headers={"Accept": old}) as answer:
                assert answer.headers["Content-Type"] == old
                found = json.loads(await answer.text())
                assert found["didResolutionMetadata"] == {"contentType": "application/did"}
            async with session.get(url + METHOD + "a" * MOST_LINE) as answer:
                assert answer.status == 400

    asyncio.run(ask())
    database.close()


def test_pr_71_the_command_serves_it_also_while_its_chain_is_away(tmp_path: Path) -> None:
    place = ("--db", str(tmp_path / "prism.db"), "--port", "0", "--resolver-port", "0")
    command = [sys.executable, "-m", "pubsub_emulator", "prism", "serve", *place]
    node = subprocess.Popen(
        [*command, "--chain", f"ws://127.0.0.1:{free_port()}"],
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert node.stdout is not None
        assert node.stdout.readline().startswith("grpc://")
        url = node.stdout.readline().partition(": ")[0]
        with urllib.request.urlopen(url + CREDENTIAL_SUBJECT, timeout=60) as answer:  # noqa: S310  # local
            assert answer.headers["Content-Type"] == "application/did"
            assert json.load(answer)["id"] == CREDENTIAL_SUBJECT
    finally:
        node.kill()
        node.wait()
        node.stdout.close()  # type: ignore[union-attr]  # a pipe


def test_pr_71_a_database_that_does_not_answer_is_an_error_of_the_node(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "prism.db"))

    async def ask() -> None:
        # The tables were never made.
        async with (
            serve_resolver(Resolver(database), "127.0.0.1", 0) as url,
            aiohttp.ClientSession() as session,
            session.get(url + NOWHERE) as answer,
        ):
            assert answer.status == 503
            found = json.loads(await answer.text())
        assert found["didResolutionMetadata"]["error"]["type"] == ERROR + "INTERNAL_ERROR"

    asyncio.run(ask())
    database.close()


@pytest.mark.parametrize("with_tls", [False, True])
def test_pr_71_tokens_and_tls_are_those_of_the_node(tmp_path: Path, *, with_tls: bool) -> None:
    database = open_database(str(tmp_path / "prism.db"))
    chain, processor = processed(database)
    chain.anchor(ACTIVE.created)
    processor.run()
    callers = Callers({token_hash("secret"): "wallet"})
    tls = certificate(tmp_path)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tls.certificate, tls.key)
    trusting = ssl.create_default_context(cafile=str(tls.certificate))

    async def ask(known: Callers, header: str) -> int:
        async with (
            serve_resolver(
                Resolver(database),
                "127.0.0.1",
                0,
                callers=known,
                tls=serving if with_tls else None,
            ) as url,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
            session.get(url + METHOD + ACTIVE.suffix, headers={"Authorization": header}) as answer,
        ):
            assert url.startswith("https:" if with_tls else "http:")
            return answer.status

    assert asyncio.run(ask(callers, "Bearer secret")) == 200
    assert asyncio.run(ask(callers, "Bearer other")) == 401
    assert asyncio.run(ask(EVERYBODY, "")) == 200
    database.close()


@given(st.text(max_size=60) | st.text(alphabet='application/did+json;q=0.1, *"', max_size=60))
def test_pr_71_any_accept_header_has_an_answer(accept: str) -> None:
    assert media_type(accept) is None or "/" in str(media_type(accept))


def test_pr_71_the_weights_of_accept_decide() -> None:
    for accept, wanted in (
        ("application/json;q=0.5, application/did", "application/did"),
        (f"application/json;q=0.5,{WHOLE};q=0.9", WHOLE),
        ("application/json;q=x, */*;q=0.1", "application/did"),
        ("application/json;q=2", None),
        ("application/ld+json", "application/did+ld+json"),
        ("text/html," * (_MOST_RANGES - 1) + "application/json", "application/json"),
        ("text/html," * _MOST_RANGES + "application/json", None),
    ):
        assert media_type(accept) == wanted


def test_pr_70_a_rejected_creation_creates_nothing(database: Database) -> None:
    chain, processor = processed(database)
    wrong: Signed = create_did(
        {"m": (Usage.MASTER_KEY, secret("m")), "i": (Usage.ISSUING_KEY, secret("i"))},
        signed_with="i",
    )
    chain.anchor(wrong)
    processor.run()
    result = Resolver(database).resolve(METHOD + wrong.suffix)
    assert result.error is not None
    assert result.error.name == "NOT_FOUND"
