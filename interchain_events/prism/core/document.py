"""DID documents, and the results of DID resolution (PR-70, PR-71).

The forms are those of W3C's DID Core and DID Resolution. Keys of the usages MASTER, REVOCATION and
VDR are not in a document: they sign operations, for which DID Core does not have a relationship.
"""

import base64
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from interchain_events.prism.core import signatures
from interchain_events.prism.core.identifiers import METHOD
from interchain_events.prism.core.messages import Usage
from interchain_events.prism.core.state import Did, DidKey, DidService, is_deactivated
from interchain_events.prism.core.well_formed import SECP256K1

Document = dict[str, Any]
"""A JSON object."""

DID_TYPE: Final = "application/did"
"""The media type of a DID document."""
CONTEXT: Final = "https://www.w3.org/ns/did/v1"
"""The first context of every document."""
ERRORS: Final = "https://www.w3.org/ns/did#"
"""The prefix of the names of errors."""
_LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999."""
_RELATIONSHIPS: Final = {
    Usage.AUTHENTICATION_KEY: "authentication",
    Usage.ISSUING_KEY: "assertionMethod",
    Usage.KEY_AGREEMENT_KEY: "keyAgreement",
    Usage.CAPABILITY_INVOCATION_KEY: "capabilityInvocation",
    Usage.CAPABILITY_DELEGATION_KEY: "capabilityDelegation",
}
"""The relationship of DID Core for each usage that is in documents."""


class DidTimes(NamedTuple):
    """The times of a DID that is on a chain, in milliseconds."""

    created: int
    """The time of the block with its creation."""
    updated: int
    """The time of the block with the last operation that changed it."""


class ResolutionError(NamedTuple):
    """The reason why there is no document."""

    name: str
    """The name of DID Resolution, such as NOT_FOUND."""
    title: str
    detail: str


class Resolution(NamedTuple):
    """The result of resolving a DID."""

    document: Document | None
    """The document, `None` if there is an error or if the DID has ended."""
    metadata: Document
    error: ResolutionError | None = None

    @property
    def is_deactivated(self) -> bool:
        """Return whether the DID has ended."""
        return self.metadata.get("deactivated") is True

    def whole(self) -> Document:
        """Return the result in the form of `application/did-resolution`."""
        resolution_metadata: Document = {}
        if self.error is not None:
            resolution_metadata["error"] = {
                "type": ERRORS + self.error.name,
                "title": self.error.title,
                "detail": self.error.detail,
            }
        elif self.document is not None:
            resolution_metadata["contentType"] = DID_TYPE
        return {
            "didDocument": self.document,
            "didResolutionMetadata": resolution_metadata,
            "didDocumentMetadata": self.metadata,
        }


def failed(name: str, title: str, detail: str) -> Resolution:
    """Return a result that has an error instead of a document."""
    return Resolution(None, {}, ResolutionError(name, title, detail))


def resolution(name: str, suffix: str, did: Did, times: DidTimes | None) -> Resolution:
    """Return the result for a DID. `name` is the requested short or long form.

    `times` is `None` if the DID is not on a chain and its state comes from its long form.
    """
    has_ended = is_deactivated(did)
    metadata: Document = {"deactivated": has_ended, "versionId": did.last_hash.hex()}
    if times is not None:
        metadata["created"] = _time(times.created)
        metadata["updated"] = _time(times.updated)
        if name != METHOD + suffix:
            metadata["canonicalId"] = METHOD + suffix
    return Resolution(None if has_ended else document(name, did), metadata)


def document(name: str, did: Did) -> Document:
    """Return the document of a DID. `name` is its short or long form."""
    active = {key_id: key for key_id, key in did.keys.items() if key.active}
    content: Document = {
        "@context": [CONTEXT, *did.context],
        "id": name,
        "verificationMethod": [
            {
                "id": f"{name}#{key_id}",
                "type": "JsonWebKey2020",
                "controller": name,
                "publicKeyJwk": _jwk(key),
            }
            for key_id, key in active.items()
            if key.usage in _RELATIONSHIPS
        ],
    }
    for usage, relationship in _RELATIONSHIPS.items():
        content[relationship] = [
            f"{name}#{key_id}" for key_id, key in active.items() if key.usage is usage
        ]
    content["service"] = [
        _service(f"{name}#{service_id}", service)
        for service_id, service in did.services.items()
        if service.active
    ]
    return content


def _jwk(key: DidKey) -> Mapping[str, str]:
    """Return a public key as JSON Web Key."""
    if key.curve == SECP256K1:
        x, y = signatures.coordinates(key.point)
        return {"kty": "EC", "crv": key.curve, "x": _base64url(x), "y": _base64url(y)}
    return {"kty": "OKP", "crv": key.curve, "x": _base64url(key.point)}


def _service(name: str, service: DidService) -> Document:
    """Return a service. Its type and endpoint are texts, or the JSON that they contain (PR-24)."""
    return {
        "id": name,
        "type": _text_or_json(service.type),
        "serviceEndpoint": _text_or_json(service.endpoint),
    }


def _text_or_json(text: str) -> object:
    """Return a text, or the list or object that it contains."""
    # Names and URIs never begin with a bracket.
    if not text.lstrip().startswith(("[", "{")):
        return text
    value: object = json.loads(text, parse_float=_number)
    return value


def _number(text: str) -> float | str:
    """Return a JSON number, or its text if it would become an infinity, which JSON lacks."""
    value = float(text)
    return value if math.isfinite(value) else text


def _time(milliseconds: int) -> str:
    """Return a time in the form of XML Schema, in whole seconds of UTC.

    A chain may claim times after the year 9999. They become the end of that year.
    """
    seconds = min(milliseconds // 1_000, _LAST_SECOND)
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
