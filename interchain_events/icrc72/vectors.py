"""The formats of test vectors of the Internet Computer and ICRC-72, for `pubsub vectors check`.

Each format has a function that recognises its documents, and one that checks a vector against this
implementation and raises `Mismatch` if they differ.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Final, TypeVar

from interchain_events.icrc72 import filters
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import parse, parse_types
from interchain_events.icrc72.ic.candid.json_form import from_json, to_json
from interchain_events.icrc72.ic.candid.types import Type
from interchain_events.icrc72.ic.principal import (
    Principal,
    canister_id,
    self_authenticating,
    subnet_of,
)
from interchain_events.icrc72.namespaces import (
    check_namespace,
    check_pattern,
    from_blob,
    from_text,
    matches,
    to_text,
)
from interchain_events.icrc72.services import codec, interface
from interchain_events.icrc72.values import array, nat, skip_of, value_hash
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.vectors import Document, Format, Mismatch, each_vector, same

T = TypeVar("T")


def _exactly(*fields: str) -> Callable[[Document], bool]:
    """Return whether the first vector of a document has exactly these fields.

    It may also have a `source`.
    """

    def fits(document: Document) -> bool:
        vectors = document.get("vectors")
        first = vectors[0] if isinstance(vectors, list) and vectors else None
        return isinstance(first, dict) and {*first} - {"source"} == {*fields}

    return fits


def _refused(what: str, run: Callable[[], object]) -> None:
    """Check that `run` raises an error of this project."""
    try:
        run()
    except PubsubError:
        return
    raise Mismatch(f"{what} is taken, the vector says that it is refused")


def _parsed(vector: Document, parse_text: Callable[[str], T]) -> T | None:
    """Return the parsed text of a vector, or `None` if the vector wants it refused and it is."""
    written: str = vector["text_in"] if "text_in" in vector else vector["text"]
    if not vector.get("error"):
        return parse_text(written)
    _refused(written, lambda: parse_text(written))
    return None


@cache
def _icrc16() -> Type:
    return interface("broadcaster").types["ICRC16"]


def _principal(vector: Document) -> None:
    principal = _parsed(vector, Principal.from_text)
    if principal is not None:
        _is_principal(vector, principal, vector.get("class", principal.kind))


def _is_principal(vector: Document, principal: Principal, kind: str) -> None:
    """Check that a principal has the bytes and the text of a vector, and this class."""
    same("the principal", bytes(principal), unhex(vector["bytes"]))
    same("its text", principal.text, vector["text"])
    same("its class", principal.kind, kind)


def _canister_id(vector: Document) -> None:
    canister = canister_id(vector["subnet"], vector["index"])
    same("the id", bytes(canister), unhex(vector["bytes"]))
    same("its text", canister.text, vector["text"])
    same("its subnet", subnet_of(canister), vector["subnet"])


def _self_authenticating(vector: Document) -> None:
    _is_principal(vector, self_authenticating(unhex(vector["der"])), "self-authenticating")


def _crockford(vector: Document) -> None:
    number = _parsed(vector, from_text)
    if number is not None:
        same("the number", number, int(vector["nat"]))
        same("the text", to_text(number), vector["text"])


def _blob_id(vector: Document) -> None:
    same("the number", from_blob(unhex(vector["blob"])), int(vector["nat"]))
    same("the text", to_text(int(vector["nat"])), vector["text"])


def _value_hash(vector: Document) -> None:
    same("the hash", value_hash(from_json(_icrc16(), vector["value"])), unhex(vector["hash"]))


def _name(field: str, check: Callable[[str], object]) -> Callable[[Document], None]:
    """Return a function that checks whether a text is accepted exactly if the vector says so."""

    def checked(vector: Document) -> None:
        if vector["valid"]:
            check(vector[field])
        else:
            _refused(vector[field], lambda: check(vector[field]))

    return checked


def _wildcard(vector: Document) -> None:
    same("the match", matches(vector["pattern"], vector["namespace"]), vector["matches"])


def _filter(vector: Document) -> None:
    same(
        "the match",
        filters.matches(vector["filter"], from_json(_icrc16(), vector["data"])),
        vector["matches"],
    )


def _bad_filter(vector: Document) -> None:
    _refused(vector["filter"], lambda: filters.parse(vector["filter"]))


def _skip(vector: Document) -> None:
    skip = skip_of(array(nat(int(number)) for number in vector["skip"]))
    same("the delivery", skip.passes(int(vector["eventId"])), vector["delivered"])


def _both(decoder: Callable[[bytes], T], vector: Document) -> T:
    """Decode the encodings of two other implementations, which must give the same values."""
    values = decoder(unhex(vector["py"]))
    if decoder(unhex(vector["js"])) != values:
        raise Mismatch("the two encodings are read as different values")
    return values


def _candid_value(vector: Document) -> None:
    (value,) = _both(Decoder((_icrc16(),)).decode, vector)
    same("the value", to_json(_icrc16(), value), vector["value"])


def _candid_message(vector: Document) -> None:
    """Check arguments or results of a method, also by encoding and decoding them again."""
    method = codec(vector["method"])
    side = method.args if vector["side"] == "args" else method.rets
    values = _both(side.decode, vector)
    same(
        "the message",
        [to_json(type_, value) for type_, value in zip(side.types, values, strict=True)],
        vector["json"],
    )
    same("our encoding, read back", side.decode(side.encode(*values)), values)
    from_form = tuple(
        from_json(type_, form) for type_, form in zip(side.types, vector["json"], strict=True)
    )
    same("the form, read back", from_form, values)


def _conformance(vector: Document) -> None:
    """Check a test of Candid's own conformance suite."""
    types = parse_types(vector["type"], parse(vector["defs"]).types)
    decoder = Decoder(types)
    raw = unhex(vector["bytes"])
    if vector["want"] == "refused":
        _refused(vector["desc"], lambda: decoder.decode(raw))
        return
    values = decoder.decode(raw)
    if "json" in vector:
        same(
            "the values",
            [to_json(type_, value) for type_, value in zip(types, values, strict=True)],
            vector["json"],
        )
    if vector["want"] == "equal":
        same("the other value", decoder.decode(unhex(vector["other"])), values)
    elif vector["want"] == "different" and decoder.decode(unhex(vector["other"])) == values:
        raise Mismatch("the two are read as one value")


def _coercion(vector: Document) -> None:
    """Check how a message of other types is read as a type of a service."""
    types = interface(vector["did"]).types
    raw = unhex(vector["bytes"])
    wanted = (
        types[vector["type"]] if vector["type"] in types else parse_types(f"({vector['type']})")[0]
    )
    decoder = Decoder((wanted,))
    if vector.get("refused"):
        _refused(vector["desc"], lambda: decoder.decode(raw))
    else:
        same("the value", to_json(wanted, decoder.decode(raw)[0]), vector["json"])


_KINDS: Final = (
    ("principals", _exactly("text", "bytes", "class"), _principal),
    ("canister ids", _exactly("subnet", "index", "bytes", "text"), _canister_id),
    ("self-authenticating principals", _exactly("der", "text", "bytes"), _self_authenticating),
    ("Crockford identifiers", _exactly("nat", "text"), _crockford),
    ("blob identifiers", _exactly("blob", "nat", "text"), _blob_id),
    ("ICRC16 hashes", _exactly("value", "hash"), _value_hash),
    (
        "namespaces",
        _exactly("namespace", "valid"),
        _name("namespace", partial(check_namespace, narrow=True)),
    ),
    (
        "patterns",
        _exactly("pattern", "valid"),
        _name("pattern", partial(check_pattern, narrow=True)),
    ),
    ("wildcards", _exactly("pattern", "namespace", "matches"), _wildcard),
    ("CandyPath filters", _exactly("filter", "data", "matches"), _filter),
    ("bad CandyPath filters", _exactly("filter"), _bad_filter),
    ("skips", _exactly("skip", "eventId", "delivered"), _skip),
    ("ICRC16 values in Candid", _exactly("value", "py", "js"), _candid_value),
    (
        "ICRC-72 messages in Candid",
        _exactly("did", "method", "side", "json", "py", "js"),
        _candid_message,
    ),
    ("Candid coercions", _exactly("desc", "did", "type", "bytes", "json", "js"), _coercion),
    ("Candid conformance", _exactly("file", "desc", "defs", "type", "bytes", "want"), _conformance),
)

FORMATS = tuple(Format(name, fits, each_vector(check)) for name, fits, check in _KINDS)
