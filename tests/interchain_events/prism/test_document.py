"""DID documents and results alone, without a chain (PR-70, PR-71)."""

import time

import pytest
from support.prism.wallet import secret

from interchain_events.prism import create_did
from interchain_events.prism.core import messages as m
from interchain_events.prism.core.document import (
    CONTEXT,
    DidTimes,
    Resolution,
    document,
    failed,
    resolution,
)
from interchain_events.prism.core.identifiers import METHOD
from interchain_events.prism.core.process import effect
from interchain_events.prism.core.signatures import coordinates, public_point
from interchain_events.prism.core.state import Did, deactivated
from interchain_events.prism.core.well_formed import RAW_CURVES

SECOND = 1_700_000_000


def _did(*services: m.Service, keys: tuple[m.PublicKey, ...] = ()) -> Did:
    """A DID with a master key, other keys and services."""
    signed = create_did({"m": (m.Usage.MASTER_KEY, secret("m"))}, services)
    creation = m.decode(m.AtalaOperation, signed.operation).operation
    assert isinstance(creation, m.CreateDID)
    assert creation.did_data is not None
    data = creation.did_data._replace(public_keys=(*creation.did_data.public_keys, *keys))
    return effect(None, m.CreateDID(data), signed.hash)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("LinkedDomains", "LinkedDomains"),
        ('{"n": 1.5, "m": 2}', {"n": 1.5, "m": 2}),
        ('{"n": -1e999, "m": 1e2}', {"n": "-1e999", "m": 100.0}),
        (' ["a", {"b": null}]', ["a", {"b": None}]),
        ("1.5", "1.5"),
    ],
)
def test_pr_70_a_service_shows_text_or_the_json_in_it(text: str, shown: object) -> None:
    did = _did()
    service = _did(m.Service("s", "T", "a:b")).services["s"]._replace(type=text, endpoint=text)
    found = document("name", did._replace(services={"s": service}))
    assert found["service"] == [{"id": "name#s", "type": shown, "serviceEndpoint": shown}]


def test_pr_70_a_key_is_a_json_web_key_of_its_curve() -> None:
    point = public_point(secret("a").raw)
    x, y = coordinates(point)
    keys = [
        m.PublicKey("k", m.Usage.AUTHENTICATION_KEY, m.CompressedECKeyData("secp256k1", point)),
        *(
            m.PublicKey(curve, m.Usage.KEY_AGREEMENT_KEY, m.ECKeyData(curve, bytes(32)))
            for curve in RAW_CURVES
        ),
    ]
    found = document("name", _did(keys=tuple(keys)))
    jwks = {method["id"]: method["publicKeyJwk"] for method in found["verificationMethod"]}
    zeros = "A" * 43
    assert jwks == {
        "name#k": {"kty": "EC", "crv": "secp256k1", "x": _text(x), "y": _text(y)},
        "name#Ed25519": {"kty": "OKP", "crv": "Ed25519", "x": zeros},
        "name#X25519": {"kty": "OKP", "crv": "X25519", "x": zeros},
    }
    for method in found["verificationMethod"]:
        assert (method["type"], method["controller"]) == ("JsonWebKey2020", "name")
    assert (found["@context"], found["id"]) == ([CONTEXT], "name")
    assert found["authentication"] == ["name#k"]
    assert found["keyAgreement"] == ["name#Ed25519", "name#X25519"]
    assert found["assertionMethod"] == []


def _text(coordinate: bytes) -> str:
    """A coordinate in base64url, digit by digit."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    number = int.from_bytes(coordinate) << 2
    return "".join(digits[number >> 6 * at & 63] for at in reversed(range(43)))


@pytest.fixture
def _tokyo(monkeypatch: pytest.MonkeyPatch) -> object:
    """A machine whose clock does not show UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_tokyo")
def test_pr_70_times_are_in_utc_wherever_the_node_is() -> None:
    did, suffix = _did(), "a" * 64
    times = DidTimes(SECOND * 1000 + 999, (SECOND + 60) * 1000)
    short = resolution(METHOD + suffix, suffix, did, times).metadata
    assert short == {
        "deactivated": False,
        "versionId": did.last_hash.hex(),
        "created": "2023-11-14T22:13:20Z",
        "updated": "2023-11-14T22:14:20Z",
    }
    long = resolution(f"{METHOD}{suffix}:abc", suffix, did, times).metadata
    assert long == short | {"canonicalId": METHOD + suffix}
    assert resolution(f"{METHOD}{suffix}:abc", suffix, did, None).metadata == {
        "deactivated": False,
        "versionId": did.last_hash.hex(),
    }


def test_pr_71_a_whole_result_has_a_document_or_an_error() -> None:
    did, suffix = _did(), "a" * 64
    found = resolution(METHOD + suffix, suffix, did, None)
    assert found.whole() == {
        "didDocument": document(METHOD + suffix, did),
        "didResolutionMetadata": {"contentType": "application/did"},
        "didDocumentMetadata": found.metadata,
    }
    ended = resolution(METHOD + suffix, suffix, deactivated(did, m.DeactivateDID(), b"h"), None)
    assert (found.is_deactivated, ended.is_deactivated) == (False, True)
    assert ended == Resolution(None, {"deactivated": True, "versionId": b"h".hex()})
    assert ended.whole() == {
        "didDocument": None,
        "didResolutionMetadata": {},
        "didDocumentMetadata": ended.metadata,
    }
    error = failed("NOT_FOUND", "a title", "a detail")
    assert not error.is_deactivated
    assert error.whole() == {
        "didDocument": None,
        "didResolutionMetadata": {
            "error": {
                "type": "https://www.w3.org/ns/did#NOT_FOUND",
                "title": "a title",
                "detail": "a detail",
            }
        },
        "didDocumentMetadata": {},
    }
