"""The rights of callers, and events signed as JWTs (ID-13, ID-23).

A caller proves its rights with a bearer token: a fixed token, whose hash is in the settings, or a
JWT.
"""

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

from interchain_events.distributor.service.problems import Handler, Problem, bad
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import token_hash

log = logging.getLogger("pubsub.distributor")

RIGHTS: Final = ("publish", "subscribe", "read", "admin")
"""All rights: to publish, to subscribe, to read, and to operate the distributor."""
ALGORITHMS: Final = ("ES256", "EdDSA", "RS256")
"""The signature algorithms that are accepted."""
REFRESH_SECONDS: Final = 300.0
"""The age at which fetched keys are fetched again. A token with an unknown key causes a fetch at a
tenth of this age."""
LEEWAY_SECONDS: Final = 5
"""The tolerated difference between the clocks of the issuer and of this machine."""
MOST_KEYS: Final = 256 * 1024
"""The greatest size of a fetched key set, in bytes."""
_NO_KEYS: Final[dict[str, list[object]]] = {"keys": []}


class AccessError(PubsubError):
    """Raised if the settings of access cannot be used. The message names the place."""


class Keys:
    """A JSON Web Key Set: a fixed one, or one that is fetched from a URL.

    It is fetched again when it is old, and earlier if a token names an unknown key.
    """

    def __init__(self, keys: object = _NO_KEYS, url: str = "") -> None:
        self._url = url
        self._fetched = -REFRESH_SECONDS
        """The time of the monotonic clock at which the keys were last fetched."""
        self._fetching = asyncio.Lock()
        """Held while the keys are fetched, so that concurrent requests cause one fetch."""
        self._set = _key_set(keys)

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        """Return the key with the id `kid`, `None` if there is no such key.

        If `kid` is `None`, returns the only key of the set, or `None` if there are several.
        """
        if self._url and self._is_old(kid):
            async with self._fetching:
                # Another request may have fetched the keys while this one waited for the lock.
                if self._is_old(kid):
                    await self._fetch()
        return self._look(kid)

    def _is_old(self, kid: str | None) -> bool:
        """Return whether the keys must be fetched again.

        Even for an unknown key there is an interval, because callers can invent keys.
        """
        age = time.monotonic() - self._fetched
        most = REFRESH_SECONDS / 10 if self._look(kid) is None else REFRESH_SECONDS
        return age > most

    def _look(self, kid: str | None) -> jwt.PyJWK | None:
        """Return a key of the present set, see `find`."""
        if kid is None:
            return self._set[0] if len(self._set) == 1 else None
        return next((key for key in self._set if key.key_id == kid), None)

    async def _fetch(self) -> None:
        """Fetch the keys. If that fails, log the error and keep the present ones."""
        try:
            timeout = aiohttp.ClientTimeout(total=5)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                if response.status == HTTPStatus.OK:
                    self._set = _key_set(json.loads(await _whole(response.content)))
        except (
            aiohttp.ClientError,
            OSError,
            TimeoutError,
            ValueError,
            RecursionError,
            AccessError,
        ) as error:
            log.warning(
                "the keys cannot be fetched", extra={"fields": {"error": type(error).__name__}}
            )
        finally:
            self._fetched = time.monotonic()


async def _whole(content: aiohttp.StreamReader) -> bytes:
    """Return the body of an answer. Raises `AccessError` if it exceeds `MOST_KEYS` bytes."""
    body = b""
    async for part in content.iter_any():
        body += part
        if len(body) > MOST_KEYS:
            raise AccessError(f"the key set is longer than {MOST_KEYS} bytes")
    return body


def _key_set(keys: object) -> list[jwt.PyJWK]:
    """Return those keys of a set that can verify signatures.

    Raises `AccessError` if `keys` is not a key set.
    """
    if not isinstance(keys, dict) or not isinstance(keys.get("keys"), list):
        raise AccessError("a JSON Web Key Set is an object with a list `keys`")
    usable = []
    for fields in keys["keys"]:
        try:
            key = jwt.PyJWK.from_dict(fields)
        except (PyJWTError, TypeError, AttributeError):
            continue
        if key.algorithm_name in ALGORITHMS:
            usable.append(key)
    return usable


@dataclass(frozen=True, slots=True)
class Verifier:
    """The settings with which JWTs (compact JWS) are verified.

    If `check` is false, every signature and time is accepted. If `expire` is true, a token must
    have the claim `exp`.
    """

    keys: Keys
    check: bool = True
    issuer: str | None = None
    audience: str | None = None
    expire: bool = False

    async def claims(self, token: str) -> dict[str, object]:
        """Return the claims of a token. Raises `PyJWTError` if it is refused."""
        try:
            return await self._claims(token)
        except (UnicodeError, RecursionError, OverflowError):
            raise jwt.DecodeError("not a token") from None

    async def _claims(self, token: str) -> dict[str, object]:
        """Return the claims of a token.

        The token must have the algorithm of its key, so that it cannot choose a weaker one.
        """
        if not self.check:
            return jwt.decode(
                token, options={"verify_signature": False, "verify_exp": False, "verify_nbf": False}
            )
        header = jwt.get_unverified_header(token)
        key = await self.keys.find(header.get("kid"))
        if key is None or header.get("alg") != key.algorithm_name:
            raise jwt.InvalidKeyError(
                "the key set has no key with the name and algorithm of the token"
            )
        required = ["exp"] if self.expire else []
        return jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            issuer=self.issuer,
            audience=self.audience,
            leeway=LEEWAY_SECONDS,
            options={
                "verify_aud": self.audience is not None,
                "verify_iat": False,
                "require": required,
            },
        )


def hash_token(token: str) -> str:
    """Return the SHA-256 hash of a token, in hexadecimal."""
    return token_hash(token).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRights:
    """The rights of callers.

    Either everyone has all rights, or a caller has those of its token (by the token's hash) or
    those listed in the claim `scope` of its JWT.
    """

    everyone: bool = False
    tokens: dict[str, frozenset[str]] = field(default_factory=dict)
    verifier: Verifier | None = None

    async def require(self, request: web.Request, right: str) -> None:
        """Check that a caller has a right.

        Raises a `Problem` with status 401 if the caller is not known, and with 403 if it does not
        have the right.
        """
        if self.everyone:
            return
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.isascii() or not token.strip():
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "a bearer token is needed")
        hashed = hash_token(token.strip())
        rights = None
        for known, known_rights in self.tokens.items():
            # Every hash is compared, in constant time, so that the duration tells nothing.
            if hmac.compare_digest(known, hashed):
                rights = known_rights
        if rights is None:
            rights = await self._of_jwt(token.strip())
        if right not in rights:
            raise Problem(HTTPStatus.FORBIDDEN, "forbidden", f"the right {right!r} is needed")

    async def _of_jwt(self, token: str) -> frozenset[str]:
        """Return the rights of a JWT. Raises a `Problem` with status 401 if it is refused."""
        if self.verifier is None:
            raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "the token is not known")
        try:
            claims = await self.verifier.claims(token)
        except PyJWTError as error:
            raise Problem(
                HTTPStatus.UNAUTHORIZED, "unauthorized", f"the token is refused: {error}"
            ) from None
        scope = claims.get("scope", "")
        return frozenset(scope.split()) if isinstance(scope, str) else frozenset()

    def guarded(self, right: str, handler: Handler) -> Handler:
        """Wrap a handler so that only callers with a right reach it."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            await self.require(request, right)
            return await handler(request)

        return guarded


async def jwt_event(verifier: Verifier | None, body: bytes) -> dict[str, object]:
    """Return the fields of a publication that was sent as a JWT (ID-23).

    Raises a `Problem` if the token is refused or no verifier is configured.
    """
    if verifier is None:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "no-jwt",
            "no keys are configured to verify JWTs with",
        )
    try:
        return await verifier.claims(body.decode("ascii").strip())
    except UnicodeDecodeError:
        raise bad("not-a-jwt") from None
    except PyJWTError as error:
        raise Problem(
            HTTPStatus.UNAUTHORIZED, "bad-signature", f"the event is refused: {error}"
        ) from None
