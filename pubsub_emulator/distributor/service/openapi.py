"""The description of the HTTP interface that adapter and distributor have in common (OpenAPI 3.1)."""

from typing import Any, Final

from pubsub_emulator.distributor.event import (
    MOST_METADATA,
    MOST_METADATUM,
    MOST_NUMBER,
    MOST_TIME,
    MOST_TYPE,
)
from pubsub_emulator.distributor.service.addresses import MOST_URL
from pubsub_emulator.distributor.service.requests import (
    MOST_INTEREST_METADATA,
    MOST_LIMIT,
    MOST_MS,
    MOST_SECRET,
    MOST_TYPES,
)
from pubsub_emulator.primitives.version import VERSION

Json = dict[str, Any]

_HASH: Final[Json] = {"type": "string", "pattern": "^0x[0-9a-fA-F]{64}$"}
_BLOCK: Final[Json] = {
    "type": "string",
    "pattern": "^0x[0-9a-f]{64}$",
    "description": "the hash of the event's block; with it a log that was taken back is always noticed",
}
_TYPE: Final[Json] = {"type": "string", "minLength": 1, "maxLength": MOST_TYPE}
_METADATA: Final[Json] = {
    "type": "array",
    "maxItems": MOST_METADATA,
    "items": {"type": "string", "minLength": 1, "maxLength": MOST_METADATUM, "pattern": "\\S"},
}
_LOCATION: Final[Json] = {
    "type": "string",
    "maxLength": 2048,
    "description": "An http or https URL whose query parameter `hl` is the global id.",
    "examples": ["https://n.example/e?hl=0xb1331924fa7a2dc86ebedfbef5b159449cf91112b5ec4336ca8342cc71ac060e"],
}
_FIELDS: Final[Json] = {
    "eventType": _TYPE,
    "dataLocation": _LOCATION,
    "relevantMetadata": _METADATA,
    "previousEntityHash": _HASH,
}
_NUMBER: Final[Json] = {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER}
_TIME: Final[Json] = {"type": "integer", "minimum": 0, "maximum": MOST_TIME}

_EXAMPLE: Final[Json] = {
    "eventType": "ProductOffering",
    "dataLocation": "https://n.example/e?hl=0xb1331924fa7a2dc86ebedfbef5b159449cf91112b5ec4336ca8342cc71ac060e",
    "relevantMetadata": ["sbx"],
    "entityId": "0x" + "82" * 32,
    "previousEntityHash": "0x" + "82" * 32,
    "iss": "0x" + "43" * 32,
}


def _object(properties: Json, required: list[str], **more: object) -> Json:
    return {"type": "object", "properties": properties, "required": required, **more}


def _list(name: str) -> Json:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}


_NETWORK_STATE: Final = _object(
    {
        "name": {"type": "string"},
        "state": {"enum": ["absent", "claimed", "published", "seen"]},
        "error": {"type": "string"},
    },
    ["name", "state"],
)
_SCHEMAS: Final[Json] = {
    "Publication": _object(
        {**_FIELDS, "entityId": _HASH, "iss": _HASH, "rpcAddress": {"type": "string"}},
        ["eventType", "dataLocation", "relevantMetadata", "entityId", "previousEntityHash"],
        examples=[_EXAMPLE],
    ),
    "Published": _object(
        {"globalId": {"type": "string"}, "timestamp": _TIME, "networks": {"type": "array", "items": _NETWORK_STATE}},
        ["globalId", "networks"],
    ),
    "Notification": _object(
        {
            **_FIELDS,
            "id": _NUMBER,
            "timestamp": _TIME,
            "entityIDHash": _HASH,
            "publisherAddress": {"type": "string"},
            "ethereumAddress": {"type": "string"},
            "blockHash": _BLOCK,
            "network": {"type": "string", "pattern": "^[a-z0-9-]{1,32}$"},
        },
        ["id", "timestamp", "eventType", "dataLocation", "relevantMetadata", "entityIDHash", "previousEntityHash"],
    ),
    "Event": _object(
        {
            **_FIELDS,
            "id": _NUMBER,
            "timestamp": {"type": "integer", "description": "milliseconds"},
            "entityId": _HASH,
            "publisherAddress": {"type": "string"},
            "ethereumAddress": {"type": "string"},
            "blockHash": _BLOCK,
        },
        ["id", "timestamp", "eventType", "dataLocation", "relevantMetadata", "entityId", "previousEntityHash"],
    ),
    "Interest": _object(
        {
            "eventTypes": {"type": "array", "minItems": 1, "maxItems": MOST_TYPES, "items": _TYPE},
            "metadata": {
                "type": "array",
                "maxItems": MOST_INTEREST_METADATA,
                "items": {"type": "string", "minLength": 1, "maxLength": MOST_METADATUM},
            },
            "notificationEndpoint": {"type": "string", "format": "uri", "maxLength": MOST_URL},
            "secret": {"type": "string", "maxLength": MOST_SECRET},
        },
        ["eventTypes", "notificationEndpoint"],
    ),
    "Everything": _object(
        {"notificationEndpoint": {"type": "string", "format": "uri", "maxLength": MOST_URL}}, ["notificationEndpoint"]
    ),
    "Subscribed": _object(
        {
            "subscriptionId": {"type": "string"},
            "networks": {
                "type": "array",
                "items": _object(
                    {"name": {"type": "string"}, "success": {"type": "boolean"}, "error": {"type": "string"}},
                    ["name", "success"],
                ),
            },
        },
        ["subscriptionId", "networks"],
    ),
    "Subscription": _object(
        {
            "subscriptionId": {"type": "string"},
            "eventTypes": {"type": "array", "items": {"type": "string"}},
            "metadata": {"type": "array", "items": {"type": "string"}},
            "notificationEndpoint": {"type": "string"},
            "active": {"type": "boolean"},
        },
        ["subscriptionId", "eventTypes", "metadata", "notificationEndpoint"],
    ),
    "DeadLetter": _object(
        {
            "letterId": {"type": "string"},
            "globalId": {"type": "string"},
            "network": {"type": "string"},
            "subscription": {"type": "string"},
            "reason": {"type": "string"},
            "timestamp": {"type": "integer", "description": "milliseconds"},
            "tries": {"type": "integer"},
        },
        ["letterId", "globalId", "reason", "timestamp", "tries"],
    ),
    "Health": _object(
        {
            "status": {"enum": ["UP", "DEGRADED", "DOWN"]},
            "checks": {
                "type": "array",
                "items": _object({"name": {"type": "string"}, "status": {"type": "string"}}, ["name", "status"]),
            },
        },
        ["status", "checks"],
    ),
    "Problem": _object(
        {
            "type": {"type": "string", "pattern": "^urn:ied:"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
        ["type", "title", "status"],
    ),
}


def _json(words: str, schema: Json | str, **more: object) -> Json:
    found = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    return {"description": words, "content": {"application/json": {"schema": found}}, **more}


def _problems(*statuses: int) -> Json:
    """Error answers; those that any request may meet are always among them."""
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": "An error.", "content": problem} for status in (*statuses, 401, 403, 429, 503)}


def _body(schema: str) -> Json:
    return {"required": True, "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}


def _path(*names: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}} for name in names
    ]


def _query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "schema": schema}


_PUBLISHED: Final[Json] = {"oneOf": [_TIME, {"$ref": "#/components/schemas/Published"}]}


def _publish() -> Json:
    body = _body("Publication")
    body["content"]["application/jwt"] = {"schema": {"type": "string"}}
    words = {"201": "A network said yes.", "200": "No network lacked the event.", "202": "Stored; no yes yet."}
    return {
        "operationId": "publishEvent",
        "summary": "Publish an event.",
        "requestBody": body,
        "parameters": [
            {"name": "Prefer", "in": "header", "schema": {"type": "string", "examples": ["return=representation"]}}
        ],
        "responses": {status: _json(text, _PUBLISHED) for status, text in words.items()}
        | _problems(400, 409, 413, 415, 422),
    }


def _subscribe(name: str, schema: str) -> Json:
    return {
        "operationId": name,
        "summary": "Subscribe an endpoint.",
        "requestBody": _body(schema),
        "responses": {
            "201": _json("A new subscription.", "Subscribed"),
            "200": _json("An equal one exists.", "Subscribed"),
        }
        | _problems(400, 413, 415),
    }


def _events(*, distributor: bool) -> Json:
    after: Json = {"type": "string", "pattern": "^[A-Za-z0-9_-]*$"} if distributor else _NUMBER
    headers: Json = {}
    if distributor:
        headers["headers"] = {name: {"schema": {"type": "string"}} for name in ("IED-Missing", "IED-Next")}
    times: Json = {"type": "integer", "minimum": 0, "maximum": MOST_MS}
    return {
        "operationId": "events",
        "summary": "Events by time, ascending: the newest of each entity, or all.",
        "parameters": [
            _query("startDate", times),
            _query("endDate", times),
            _query("envM", {"type": "string", "minLength": 1, "maxLength": MOST_METADATUM}),
            _query("all", {"type": "boolean"}),
            _query("after", after),
            _query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_LIMIT}),
        ],
        "responses": {"200": _json("Events.", _list("Event"), **headers)} | _problems(400, 422),
    }


def _operations() -> Json:
    text = {"text/plain": {"schema": {"type": "string"}}}
    health = _json("How it is.", "Health")
    return {
        "/health": {"get": {"operationId": "health", "responses": {"200": health, "503": health}}},
        "/livez": {"get": {"operationId": "livez", "responses": {"200": _json("It answers.", {"type": "object"})}}},
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "responses": {"200": {"description": "Prometheus text.", "content": text}} | _problems(),
            }
        },
        "/openapi.json": {
            "get": {"operationId": "openapi", "responses": {"200": _json("This document.", {"type": "object"})}}
        },
    }


def _webhooks() -> Json:
    answers = {"200": _json("Stored.", {"type": "object"})} | _problems(400, 404, 413, 415)
    found: Json = {}
    for kind, names in (
        ("eventNotification", ("network", "key")),
        ("desmosNotification", ("network", "subscription", "key")),
    ):
        path = "/internal/" + kind + "".join(f"/{{{name}}}" for name in names)
        operation = {"operationId": kind, "requestBody": _body("Notification"), "responses": answers}
        found[path] = {"post": {**operation, "security": []}, "parameters": _path(*names)}
    return found


def _api(*, distributor: bool) -> Json:
    letters: Json = {
        "/dead-letters": {
            "get": {
                "operationId": "deadLetters",
                "responses": {"200": _json("Dead letters.", _list("DeadLetter"))} | _problems(),
            }
        },
        "/dead-letters/{letter}/redrive": {
            "parameters": _path("letter"),
            "post": {
                "operationId": "redrive",
                "responses": {"202": _json("It is tried again.", {"type": "object"})} | _problems(404, 409),
            },
        },
    }
    return {
        "/publishEvent": {"post": _publish()},
        "/subscribe": {
            "post": _subscribe("subscribe", "Interest"),
            "get": {
                "operationId": "subscriptions",
                "responses": {"200": _json("Subscriptions.", _list("Subscription"))} | _problems(),
            },
        },
        "/subscribe/all": {"post": _subscribe("subscribeAll", "Everything")},
        "/subscribe/{subscription}": {
            "parameters": _path("subscription"),
            "delete": {"operationId": "unsubscribe", "responses": {"204": {"description": "Ended."}} | _problems(404)},
        },
        "/events": {"get": _events(distributor=distributor)},
        "/publications/{id}": {
            "parameters": _path("id"),
            "get": {
                "operationId": "publication",
                "responses": {"200": _json("Where the event is.", "Published")} | _problems(404),
            },
        },
        **(letters if distributor else {}),
    }


def document(*, distributor: bool) -> Json:
    """The description; both versions of the interface have the same operations."""
    name = "distributor" if distributor else "adapter"
    paths = {
        f"/api/{version}{path}": _versioned(item, version)
        for version in ("v1", "v2")
        for path, item in _api(distributor=distributor).items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Interchain Event Distributor: {name}", "version": VERSION},
        "paths": paths | _operations() | (_webhooks() if distributor else {}),
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


def _versioned(item: Json, version: str) -> Json:
    return {
        name: {**part, "operationId": f"{part['operationId']}-{version}"} if isinstance(part, dict) else part
        for name, part in item.items()
    }
