"""The settings of a distributor, read from a TOML file."""

import os
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from interchain_events.distributor.core.rules import NOW, START, Rules
from interchain_events.distributor.service.access import (
    RIGHTS,
    AccessError,
    AccessRights,
    Keys,
    Verifier,
)
from interchain_events.distributor.service.problems import parse_json
from pubsub_emulator.files.settings import Problem, SettingsError, StrictModel, parse, read
from pubsub_emulator.serving.guard import Names, is_loopback
from pubsub_emulator.serving.origins import ORIGIN


def _origin(text: str) -> str:
    """Return a web origin. Raises `ValueError` if a browser could not send it as one."""
    if not ORIGIN.fullmatch(text):
        raise ValueError("not a web origin such as http://localhost:3000")
    return text


MOST_NETWORKS: Final = 64
"""The greatest number of networks."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Url = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=2048)]
Origin = Annotated[str, AfterValidator(_origin), Field(max_length=2048)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]


def _unusable(field: str, reason: str) -> SettingsError:
    """Return the error for a setting that cannot be used. The settings' file is not named."""
    return SettingsError("", Problem(None, field, reason))


class AdapterConfig(StrictModel):
    """The adapter of one network.

    Its token is in an environment variable or a file, never in the settings.
    """

    url: Url
    profile: Literal["standard", "legacy"] = "standard"
    """`legacy` for public adapters."""
    chain_id: str = ""
    """With `legacy`: the value that the adapter appends to the metadata of events."""
    environments: list[str] = Field(default_factory=list)
    """With `legacy`: the environments to read, otherwise all of `dev`, `prd` and `sbx`."""
    unique: bool | None = None
    """Whether the network refuses an id that it already has. By default this is so unless the
    profile is `legacy`."""
    token_env: str = ""
    """The name of the environment variable that has the adapter's token."""
    token_file: str = ""
    """The path of the file that has the adapter's token, relative to the settings' folder."""

    def token(self, place: str, folder: Path) -> str:
        """Return the token, empty if none is configured.

        `place` names the settings in errors. Raises `SettingsError` if the variable or file cannot
        be read.
        """
        if self.token_env:
            token = os.environ.get(self.token_env)
            if not token:
                raise _unusable(f"{place}.token_env", f"the environment has no {self.token_env}")
            return token
        if self.token_file:
            try:
                return (folder / self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise _unusable(f"{place}.token_file", f"{error}") from error
        return ""


class TokenConfig(StrictModel):
    """A caller's token. The settings contain only its SHA-256 hash."""

    name: str
    """A name for people."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash in hexadecimal."""
    rights: list[str]
    """Some of `publish`, `subscribe`, `read` and `admin`."""

    @field_validator("rights")
    @classmethod
    def _known(cls, rights: list[str]) -> list[str]:
        """Refuse unknown rights."""
        unknown = [right for right in rights if right not in RIGHTS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(RIGHTS)}")
        return rights


class JwtConfig(StrictModel):
    """The keys with which JWTs are verified, and the claims that the JWTs must have."""

    jwks: str = ""
    """A file or URL with a JSON Web Key Set."""
    issuer: str | None = None
    """The claim `iss` that a token must have."""
    audience: str | None = None
    """The claim `aud` that a token must have."""
    check: bool = True
    """With `false`, every signature is accepted."""
    without_exp: bool = False
    """Accept callers' tokens without an expiry (`exp`)."""

    @model_validator(mode="after")
    def _has_keys(self) -> "JwtConfig":
        """Refuse a check of signatures without keys."""
        if self.check and not self.jwks:
            raise ValueError("jwks: give a file or URL of keys, or set check = false")
        return self


class AccessConfig(StrictModel):
    """The rights of callers."""

    open: bool = False
    """Serve everyone, even at a public address."""
    tokens: list[TokenConfig] = Field(default_factory=list)
    jwt: JwtConfig | None = None
    """Keys for callers' JWTs, whose claim `scope` lists rights."""


class RequestedTypesConfig(StrictModel):
    """The subscription that is requested if an adapter offers neither all events nor type `*`."""

    types: list[str] = Field(default_factory=list)
    metadata: list[str] = Field(default_factory=list)


class Config(StrictModel):
    """The settings of a distributor. Times are in seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8090
    public_url: Url
    """The URL of this distributor's webhooks. Adapters must be able to reach it."""
    store: str = "sqlite:distributor.db"
    """The address of the store, which replicas share: `sqlite:PATH`, `postgresql://…`, `redis://…`
    or `memory:`."""
    call_timeout: Annotated[float, Field(gt=0, le=300)] = 10
    """The longest time of a call of an adapter. The lease of a claim is twice as long."""
    replication_delay: Seconds | None = None
    """The wait before an event of one network is published on the others.

    The wait makes it unlikely that two distributors with separate stores both find an id absent and
    publish it. The default is 0, and 15 for networks that publish an id twice.
    """
    since: Literal["start", "now"] | Annotated[int, Field(ge=0)] = "start"
    """Events before this time are not published on other networks: `start`, `now` for the time of
    the first start with this store, or seconds since 1970."""
    retain: Seconds = 0
    """The age, by block time, at which ids are forgotten. 0 keeps all."""
    private_endpoints: bool = False
    """Allow subscribers at private, loopback and link-local addresses."""
    origins: list[Origin] = Field(default_factory=list)
    """Web origins whose pages may call and read the answers, such as `http://localhost:3000`. `*`
    allows all. The distributor's own page need not be listed."""
    most_requests: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """The number of requests that are served at once. Further ones are answered with status 429."""
    grace: Annotated[float, Field(ge=0, le=600)] = 10
    """The longest time that work in progress may take after SIGTERM."""
    adapters: Annotated[dict[Name, AdapterConfig], Field(min_length=1, max_length=MOST_NETWORKS)]
    subscriptions: RequestedTypesConfig = RequestedTypesConfig()
    access: AccessConfig = AccessConfig()
    events: JwtConfig | None = None
    """Keys for publications in `application/jwt`."""
    signed_only: bool = False
    """Accept only publications in `application/jwt`. This needs `events`."""

    @model_validator(mode="after")
    def _can_verify(self) -> "Config":
        """Refuse `signed_only` without keys, because no publication could be verified."""
        if self.signed_only and self.events is None:
            raise ValueError("signed_only: it needs the keys of `events`")
        return self

    def port_misfit(self) -> str:
        """Return the reason why adapters cannot reach the distributor, empty if none is found.

        Only a public URL on this machine is checked. Another one may lead through a proxy, so its
        port need not be the one on which the distributor listens.
        """
        url = urlsplit(self.public_url)
        name = url.hostname or ""
        if self.port == 0 or not (is_loopback(name) or name == self.host):
            return ""
        port = url.port or (443 if url.scheme == "https" else 80)
        if port == self.port:
            return ""
        return f"public_url has port {port}, but the distributor listens on port {self.port}"

    def names(self) -> Names:
        """Return the host names and origins with which the distributor may be called.

        If callers need tokens, every host name is allowed, because a malicious web page does not
        have a token.
        """
        needs_token = not self.access.open and bool(self.access.tokens or self.access.jwt)
        name = urlsplit(self.public_url).hostname or ""
        return Names(self.host, (name,), tuple(self.origins), any_host=needs_token)

    def _doubles(self, adapter: AdapterConfig) -> bool:
        """Return whether replication to a network waits because it publishes an id twice.

        A configured `replication_delay` replaces this wait, because it holds for all networks.
        """
        unique = adapter.profile == "standard" if adapter.unique is None else adapter.unique
        return self.replication_delay is None and not unique

    def _since(self) -> int:
        """Return the setting `since` as a number of `Rules`."""
        match self.since:
            case "start":
                return START
            case "now":
                return NOW
            case second:
                return second

    def rules(self, owner: str) -> Rules:
        """Return the settings of the state machine."""
        return Rules(
            tuple(self.adapters),
            owner,
            public_url=self.public_url.rstrip("/"),
            legacy=frozenset(
                name for name, adapter in self.adapters.items() if adapter.profile == "legacy"
            ),
            call_timeout=int(self.call_timeout * 1000),
            replication_delay=int((self.replication_delay or 0) * 1000),
            doubling=frozenset(
                name for name, adapter in self.adapters.items() if self._doubles(adapter)
            ),
            since=self._since(),
            retain=int(self.retain * 1000),
        )


def read_config(path: Path) -> Config:
    """Return the settings in a file. Raises `SettingsError`."""
    return read(path, Config)


def parse_config(data: bytes, place: str) -> Config:
    """Return the settings in TOML. `place` names them in errors. Raises `SettingsError`."""
    return parse(data, place, Config)


def make_access(config: AccessConfig, host: str, folder: Path) -> AccessRights:
    """Return the rights of callers.

    Raises `SettingsError` if everyone could call from other machines without `open = true`.
    """
    needs_token = bool(config.tokens) or config.jwt is not None
    if not needs_token and not config.open and not is_loopback(host):
        raise _unusable(
            "access", f"others can reach {host}; configure tokens or keys, or set open = true"
        )
    verifier = None
    if config.jwt is not None:
        verifier = make_verifier(
            config.jwt, "access.jwt", folder, expire=not config.jwt.without_exp
        )
    tokens = {token.sha256: frozenset(token.rights) for token in config.tokens}
    return AccessRights(everyone=config.open or not needs_token, tokens=tokens, verifier=verifier)


def make_verifier(config: JwtConfig, place: str, folder: Path, *, expire: bool = False) -> Verifier:
    """Return the verifier of JWTs. Raises `SettingsError` if its keys cannot be read.

    `place` names the settings in errors. If `expire` is true, tokens must have an expiry.
    """
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
    return Verifier(
        keys, check=config.check, issuer=config.issuer, audience=config.audience, expire=expire
    )
