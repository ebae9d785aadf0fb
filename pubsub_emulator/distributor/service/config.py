"""The settings of a distributor and of an adapter, read from a TOML file."""

import ipaddress
import os
import re
import time
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pubsub_emulator.emulator.untrusted import MOST_TEXT, parse_toml_file, read_bytes
from pubsub_emulator.eventplane.distributor.core.rules import Rules
from pubsub_emulator.eventplane.distributor.service.access import RIGHTS, Access, AccessError, Keys, Verifier
from pubsub_emulator.eventplane.distributor.service.adapters import Profile
from pubsub_emulator.eventplane.distributor.service.problems import parse_json
from pubsub_emulator.primitives.errors import PubsubError

MOST_NETWORKS: Final = 64
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Url = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2048)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]


class ConfigError(PubsubError):
    """A settings file that cannot be used; the message names the place."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class AdapterConfig(_Model):
    """One network's adapter. The token it wants is in an environment variable or a file, never in here."""

    url: Url
    profile: Literal["standard", "legacy"] = "standard"
    chain_id: str = ""
    environments: list[str] = []
    token_env: str = ""
    token_file: str = ""

    def token(self, place: str, folder: Path) -> str:
        """The token, empty where none is wanted. Raises `ConfigError`."""
        if self.token_env:
            found = os.environ.get(self.token_env)
            if not found:
                raise ConfigError(f"{place}.token_env: the environment has no {self.token_env}")
            return found
        if self.token_file:
            try:
                return (folder / self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"{place}.token_file: {error}") from error
        return ""


class TokenConfig(_Model):
    """A caller's token, as its SHA-256."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rights: list[str]

    @field_validator("rights")
    @classmethod
    def _known(cls, rights: list[str]) -> list[str]:
        unknown = [right for right in rights if right not in RIGHTS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(RIGHTS)}")
        return rights


class JwtConfig(_Model):
    """The keys of JWTs, and the claims that tokens must have."""

    jwks: str = ""
    issuer: str | None = None
    audience: str | None = None
    check: bool = True

    @model_validator(mode="after")
    def _has_keys(self) -> "JwtConfig":
        if self.check and not self.jwks:
            raise ValueError("jwks: give a file or URL of keys, or set check = false")
        return self


class AccessConfig(_Model):
    """The callers that are allowed; `open` allows everybody."""

    open: bool = False
    tokens: list[TokenConfig] = []
    jwt: JwtConfig | None = None


class WishConfig(_Model):
    """The third form of a subscription to everything: types and metadata by name."""

    types: list[str] = []
    metadata: list[str] = []


class Config(_Model):
    """A distributor. Times are seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8090
    public_url: Url
    store: str = "sqlite:distributor.db"
    call_timeout: Annotated[float, Field(gt=0, le=300)] = 10
    replication_delay: Seconds = 0
    since: Literal["start", "now"] | Annotated[int, Field(ge=0)] = "start"
    retain: Seconds = 0
    private_endpoints: bool = False
    most_requests: Annotated[int, Field(ge=1, le=100_000)] = 1000
    grace: Annotated[float, Field(ge=0, le=600)] = 10
    adapters: Annotated[dict[Name, AdapterConfig], Field(min_length=1, max_length=MOST_NETWORKS)]
    subscriptions: WishConfig = WishConfig()
    access: AccessConfig = AccessConfig()
    events: JwtConfig | None = None

    def rules(self, owner: str) -> Rules:
        """The state machine's rules."""
        since = {"start": 0, "now": int(time.time())}.get(str(self.since), 0)
        return Rules(
            tuple(self.adapters),
            owner,
            public_url=self.public_url.rstrip("/"),
            legacy=frozenset(name for name, each in self.adapters.items() if each.profile == "legacy"),
            call_timeout=int(self.call_timeout * 1000),
            replication_delay=int(self.replication_delay * 1000),
            since=self.since if isinstance(self.since, int) else since,
            retain=int(self.retain * 1000),
        )


def read_config(path: Path) -> Config:
    """The settings in a file. Raises `ConfigError`."""
    return parse_config(read_bytes(path, MOST_TEXT, ConfigError), str(path))


def parse_config(data: bytes, place: str) -> Config:
    """The settings in TOML; `place` is what errors call it. Raises `ConfigError`."""
    fields = parse_toml_file(data, place, ConfigError)
    try:
        return Config.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"{place}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    place = ".".join(str(part) for part in found["loc"]) or "the file"
    return re.sub(r"\s+", " ", f"{place}: {found['msg']}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_access(config: AccessConfig, host: str, folder: Path) -> Access:
    """The rights of callers. Raises `ConfigError` if everybody could call without `open = true`."""
    if config.tokens or config.jwt is not None:
        tokens = {token.sha256: frozenset(token.rights) for token in config.tokens}
        verifier = None if config.jwt is None else make_verifier(config.jwt, "access.jwt", folder)
        return Access(everyone=config.open, tokens=tokens, verifier=verifier)
    if not config.open and not is_loopback(host):
        raise ConfigError(f"access: others can reach {host}; configure tokens or keys, or set open = true")
    return Access(everyone=True)


def make_verifier(config: JwtConfig, place: str, folder: Path) -> Verifier:
    """The verifier of JWTs. Raises `ConfigError`."""
    if config.jwks.startswith(("http://", "https://")):
        keys = Keys(url=config.jwks)
    elif config.jwks:
        keys = Keys(_file_keys(folder / config.jwks, place))
    else:
        keys = Keys({"keys": []})
    return Verifier(keys, check=config.check, issuer=config.issuer, audience=config.audience)


def _file_keys(path: Path, place: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = parse_json(path.read_bytes())
        Keys(found)
    except OSError as error:
        raise ConfigError(f"{place}.jwks: {error}") from error
    except (AccessError, Exception) as error:
        raise ConfigError(f"{place}.jwks: {path}: not a JSON Web Key Set") from error
    return found


def profile_of(name: str, config: AdapterConfig, timeout: float, folder: Path) -> Profile:
    """The profile of an adapter. Raises `ConfigError`."""
    token = config.token(f"adapters.{name}", folder)
    environments = tuple(config.environments)
    return Profile(config.profile == "legacy", config.chain_id, environments, token, timeout)
