"""The settings of a distributor and of an adapter, read from a TOML file."""

import os
import time
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pubsub_emulator.distributor.core.rules import START, Rules
from pubsub_emulator.distributor.service.access import RIGHTS, Access, AccessError, Keys, Verifier
from pubsub_emulator.distributor.service.problems import parse_json
from pubsub_emulator.emulator.settings import Problem, SettingsError, StrictModel, parse, read
from pubsub_emulator.serving.guard import Names, is_loopback

MOST_NETWORKS: Final = 64
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Url = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2048)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]


def _unusable(field: str, reason: str) -> SettingsError:
    return SettingsError("", Problem(None, field, reason))


class AdapterConfig(StrictModel):
    """One network's adapter. The token it wants is in an environment variable or a file, never in here."""

    url: Url
    profile: Literal["standard", "legacy"] = "standard"
    """`legacy` for public adapters, with `chain_id` and `environments` (all of `dev`, `prd`, `sbx`)."""
    chain_id: str = ""
    environments: list[str] = Field(default_factory=list)
    unique: bool | None = None
    """Whether the network takes an id once: yes, except with `legacy`."""
    token_env: str = ""
    """The environment variable with that adapter's token."""
    token_file: str = ""
    """The file with that adapter's token."""

    def token(self, place: str, folder: Path) -> str:
        """The token, empty where none is wanted. Raises `SettingsError`."""
        if self.token_env:
            found = os.environ.get(self.token_env)
            if not found:
                raise _unusable(f"{place}.token_env", f"the environment has no {self.token_env}")
            return found
        if self.token_file:
            try:
                return (folder / self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise _unusable(f"{place}.token_file", f"{error}") from error
        return ""


class TokenConfig(StrictModel):
    """A caller's token, as its SHA-256."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rights: list[str]
    """Some of `publish`, `subscribe`, `read`, `admin`."""

    @field_validator("rights")
    @classmethod
    def _known(cls, rights: list[str]) -> list[str]:
        unknown = [right for right in rights if right not in RIGHTS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(RIGHTS)}")
        return rights


class JwtConfig(StrictModel):
    """The keys of JWTs, and the claims that tokens must have."""

    jwks: str = ""
    """A file or URL of keys."""
    issuer: str | None = None
    audience: str | None = None
    check: bool = True
    """False believes every signature."""
    without_exp: bool = False
    """Take callers' tokens that never expire."""

    @model_validator(mode="after")
    def _has_keys(self) -> "JwtConfig":
        if self.check and not self.jwks:
            raise ValueError("jwks: give a file or URL of keys, or set check = false")
        return self


class AccessConfig(StrictModel):
    """The callers that are allowed."""

    open: bool = False
    """Serve everybody, also on a public address."""
    tokens: list[TokenConfig] = Field(default_factory=list)
    jwt: JwtConfig | None = None
    """Keys of callers, whose claim `scope` lists rights."""


class WishConfig(StrictModel):
    """Used if an adapter offers neither everything nor `*`."""

    types: list[str] = Field(default_factory=list)
    metadata: list[str] = Field(default_factory=list)


class Config(StrictModel):
    """A distributor. Times are seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8090
    public_url: Url
    """The address of webhooks; adapters must reach it."""
    store: str = "sqlite:distributor.db"
    """One store for everything; replicas share it."""
    call_timeout: Annotated[float, Field(gt=0, le=300)] = 10
    """The longest time of a call, half the lease of a claim."""
    replication_delay: Seconds | None = None
    """Wait before an event of one network is published on others, so that two distributors with stores of their own
    rarely both find an id absent: 0, and 15 to networks that take an id twice."""
    since: Literal["start", "now"] | Annotated[int, Field(ge=0)] = "start"
    """Earlier events are not published: `start`, `now`, or seconds since 1970."""
    retain: Seconds = 0
    """Ids whose block is older are forgotten; 0: none."""
    private_endpoints: bool = False
    """Allow subscribers at private, loopback and link-local addresses."""
    most_requests: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Requests served at once; more get 429."""
    grace: Annotated[float, Field(ge=0, le=600)] = 10
    """The longest time of work in progress after SIGTERM."""
    adapters: Annotated[dict[Name, AdapterConfig], Field(min_length=1, max_length=MOST_NETWORKS)]
    subscriptions: WishConfig = WishConfig()
    access: AccessConfig = AccessConfig()
    events: JwtConfig | None = None
    """Keys of publications in `application/jwt`."""

    def names(self) -> Names:
        """The names by which it is called. Callers with tokens or keys may use any: no page has those."""
        keyed = not self.access.open and bool(self.access.tokens or self.access.jwt)
        return Names(self.host, (urlsplit(self.public_url).hostname or "",), any_host=keyed)

    def _doubles(self, adapter: AdapterConfig) -> bool:
        """Whether to wait before an event is replicated to a network, which takes an id twice."""
        unique = adapter.profile == "standard" if adapter.unique is None else adapter.unique
        return self.replication_delay is None and not unique

    def rules(self, owner: str) -> Rules:
        """The state machine's rules."""
        return Rules(
            tuple(self.adapters),
            owner,
            public_url=self.public_url.rstrip("/"),
            legacy=frozenset(name for name, each in self.adapters.items() if each.profile == "legacy"),
            call_timeout=int(self.call_timeout * 1000),
            replication_delay=int((self.replication_delay or 0) * 1000),
            doubling=frozenset(name for name, each in self.adapters.items() if self._doubles(each)),
            since=int(time.time()) if self.since == "now" else START if self.since == "start" else self.since,
            retain=int(self.retain * 1000),
        )


def read_config(path: Path) -> Config:
    """The settings in a file. Raises `SettingsError`."""
    return read(path, Config)


def parse_config(data: bytes, place: str) -> Config:
    """The settings in TOML; `place` is what errors call it. Raises `SettingsError`."""
    return parse(data, place, Config)


def make_access(config: AccessConfig, host: str, folder: Path) -> Access:
    """The rights of callers. Raises `SettingsError` if everybody could call without `open = true`."""
    keyed = bool(config.tokens) or config.jwt is not None
    if not keyed and not config.open and not is_loopback(host):
        raise _unusable("access", f"others can reach {host}; configure tokens or keys, or set open = true")
    verifier = None
    if config.jwt is not None:
        verifier = make_verifier(config.jwt, "access.jwt", folder, expire=not config.jwt.without_exp)
    tokens = {token.sha256: frozenset(token.rights) for token in config.tokens}
    return Access(everyone=config.open or not keyed, tokens=tokens, verifier=verifier)


def make_verifier(config: JwtConfig, place: str, folder: Path, *, expire: bool = False) -> Verifier:
    """The verifier of JWTs. Raises `SettingsError`."""
    if config.jwks.startswith(("http://", "https://")):
        keys = Keys(url=config.jwks)
    elif not config.jwks:
        keys = Keys()
    else:
        path = folder / config.jwks
        try:
            keys = Keys(parse_json(path.read_bytes()))
        except OSError as error:
            raise _unusable(f"{place}.jwks", f"{error}") from error
        except (AccessError, Exception) as error:
            raise _unusable(f"{place}.jwks", f"{path}: not a JSON Web Key Set") from error
    return Verifier(keys, check=config.check, issuer=config.issuer, audience=config.audience, expire=expire)
