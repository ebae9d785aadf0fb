"""Rights of callers, by hashed bearer tokens or JWTs, and events signed as JWTs (ID-13, ID-23)."""

import asyncio
import hmac
import json
import logging
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp
import jwt
from aiohttp import web
from jwt.exceptions import PyJWTError

from pubsub_emulator.distributor.service.problems import Handler, Problem, bad
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import token_hash

log = logging.getLogger("pubsub.distributor")

RIGHTS: Final = ("publish", "subscribe", "read", "admin")
ALGORITHMS: Final = ("ES256", "EdDSA", "RS256")
REFRESH_SECONDS: Final = 300.0
LEEWAY_SECONDS: Final = 5
MOST_KEYS: Final = 256 * 1024
_NO_KEYS: Final[dict[str, list[object]]] = {"keys": []}


class AccessError(PubsubError):
    """Settings of access that cannot be used; the message names the place."""


class Keys:
    """A JSON Web Key Set: fixed, or fetched again from time to time and when an unknown key is named."""

    def __init__(self, keys: object = _NO_KEYS, url: str = "") -> None:
        self._url = url
        self._fetched = -REFRESH_SECONDS
        self._fetching = asyncio.Lock()
        self._set = _key_set(keys)

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        """The key with an id, or the only key if no id is given."""
        if self._url and self._is_old(kid):
            async with self._fetching:
                if self._is_old(kid):  # nobody else fetched it meanwhile
                    await self._fetch()
        return self._look(kid)

    def _is_old(self, kid: str | None) -> bool:
        """Whether the keys must be fetched again: sooner if a key is not known."""
        age = time.monotonic() - self._fetched
        return age > (REFRESH_SECONDS / 10 if self._look(kid) is None else REFRESH_SECONDS)

    def _look(self, kid: str | None) -> jwt.PyJWK | None:
        if kid is None:
            return self._set[0] if len(self._set) == 1 else None
        return next((key for key in self._set if key.key_id == kid), None)

    async def _fetch(self) -> None:
        try:
            timeout = aiohttp.ClientTimeout(total=5)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                if response.status == HTTPStatus.OK:
                    self._set = _key_set(json.loads(await _whole(response.content)))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError, AccessError) as error:
            log.warning("the keys cannot be fetched", extra={"fields": {"error": type(error).__name__}})
        finally:  # where it failed, the keys known so far go on to count
            self._fetched = time.monotonic()


async def _whole(content: aiohttp.StreamReader) -> bytes:
    """The whole body of an answer. Raises `AccessError` if it is longer than `MOST_KEYS` bytes."""
    body = b""
    async for part in content.iter_any():
        body += part
        if len(body) > MOST_KEYS:
            raise AccessError(f"the key set is longer than {MOST_KEYS} bytes")
    return body


def _key_set(keys: object) -> list[jwt.PyJWK]:
    """The keys of a set that may sign; others are passed over. Raises `AccessError`."""
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise AccessError("a JSON Web Key Set is an object with a list `keys`")
    found = []
    for key in keys["keys"]:
        try:
            made = jwt.PyJWK.from_dict(key)
        except (PyJWTError, TypeError, AttributeError):
            continue
        if made.algorithm_name in ALGORITHMS:
            found.append(made)
    return found


@dataclass(frozen=True, slots=True)
class Verifier:
    """Verifies compact JWS, which must have `exp` if they `expire`. With `check` off the claims are believed."""

    keys: Keys
    check: bool = True
    issuer: str | None = None
    audience: str | None = None
    expire: bool = False

    async def claims(self, token: str) -> dict[str, object]:
        """The claims. Raises `PyJWTError`."""
        try:
            return await self._claims(token)
        except (UnicodeError, RecursionError, OverflowError):
            raise jwt.DecodeError("not a token") from None

    async def _claims(self, token: str) -> dict[str, object]:
        if not self.check:
            return jwt.decode(token, options={"verify_signature": False, "verify_exp": False, "verify_nbf": False})
        header = jwt.get_unverified_header(token)
        key = await self.keys.find(header.get("kid"))
        if key is None or header.get("alg") != key.algorithm_name:
            raise jwt.InvalidKeyError("no key of that name and algorithm")
        required = ["exp"] if self.expire else []
        return jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            issuer=self.issuer,
            audience=self.audience,
            leeway=LEEWAY_SECONDS,
            options={"verify_aud": self.audience is not None, "verify_iat": False, "require": required},
        )


def hash_token(token: str) -> str:
    """The SHA-256 of a token, in hexadecimal."""
    return token_hash(token).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rights of callers: for everyone, or by tokens (by their hash) and JWTs whose claim `scope` lists rights."""

    everyone: bool = False
    tokens: dict[str, frozenset[str]] = field(default_factory=dict)
    verifier: Verifier | None = None

    async def require(self, request: web.Request, right: str) -> None:
        """Check that the caller has a right. Raises `Problem`: 401 for an unknown caller, 403 without the right."""
        if self.everyone:
            return
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.isascii() or not token.strip():
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "a bearer token is needed")
        hashed = hash_token(token.strip())
        known = [rights for each, rights in self.tokens.items() if hmac.compare_digest(each, hashed)]
        if right not in (known[0] if known else await self._of_jwt(token.strip())):
            raise Problem(HTTPStatus.FORBIDDEN, "forbidden", f"the right {right!r} is needed")

    async def _of_jwt(self, token: str) -> frozenset[str]:
        if self.verifier is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "the token is not known")
        try:
            claims = await self.verifier.claims(token)
        except PyJWTError as error:
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", f"the token is refused: {error}") from None
        scope = claims.get("scope", "")
        return frozenset(scope.split()) if isinstance(scope, str) else frozenset()

    def guarded(self, right: str, handler: Handler) -> Handler:
        """Wrap a handler so that only callers with the right reach it."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            await self.require(request, right)
            return await handler(request)

        return guarded


async def jwt_event(verifier: Verifier | None, body: bytes) -> dict[str, object]:
    """The fields of an event that came as a JWT. Raises `Problem`."""
    if verifier is None:
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "no-jwt", "no keys are configured to verify JWTs with")
    try:
        return await verifier.claims(body.decode("ascii").strip())
    except UnicodeDecodeError:
        raise bad("not-a-jwt") from None
    except PyJWTError as error:
        raise Problem(HTTPStatus.UNAUTHORIZED, "bad-signature", f"the event is refused: {error}") from None
