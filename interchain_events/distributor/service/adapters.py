"""The interface of adapters, and adapters over HTTP (ID-1, ID-5, ID-10)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from interchain_events.distributor.core.messages import Answer, Hook, LogPage, No, Unknown, Yes
from interchain_events.distributor.event import BadEventError, Event, Notice, block_of, parse_row

NO_STATUSES: Final = frozenset({400, 409, 413, 415, 422})
"""The statuses that mean a final refusal of an event, if the body is problem+json."""
MOST_ANSWER: Final = 16 * 2**20
"""The greatest size of an adapter's answer, in bytes."""


class Query(NamedTuple):
    """A client's query for events."""

    start: int = 0
    """The earliest block time in ms, inclusive."""
    end: int = 2**53 - 1
    """The latest block time in ms, inclusive."""
    environment: str | None = None
    """A value that the metadata must contain, `None` for all events."""
    all: bool = False
    """Whether every event is wanted, or only the newest one of each entity."""
    after: int = 0
    """The number after which events are wanted."""
    limit: int = 1000
    """The greatest number of events."""

    def concerns(self, notice: Notice) -> bool:
        """Return whether an event matches the number, the time and the environment."""
        if notice.number <= self.after or not self.start <= notice.time * 1000 <= self.end:
            return False
        return self.environment is None or self.environment in notice.event.metadata


class ProbeAnswer(NamedTuple):
    """The answer of an adapter to the question whether its network has an id."""

    there: bool | None
    """`None` if the adapter could not tell."""
    hidden: bool = False
    """Whether the event may be on the network although it is not shown (see `Probed`)."""
    last: int = 0
    """The second of the last event that is shown (see `Probed`)."""


class Adapter(Protocol):
    """An adapter of one network, through which the distributor publishes and reads the log.

    Methods do not raise exceptions for errors of the adapter or its network.
    """

    fault: str
    """The reason why the last request failed, empty if it succeeded."""

    async def misfit(self) -> str:
        """Return the reason why the adapter does not have the interface of its profile.

        Empty if it has that interface, or if it does not answer.
        """

    async def publish(self, event: Event) -> Answer:
        """Publish an event. Returns `Unknown` unless the answer is clear."""

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> ProbeAnswer:
        """Return whether the network has the id of an event.

        Some adapters cannot be asked for an id and are searched. For these, `since` is the second
        from which to search, `entity` is the event's `Event.order`, and `second` is the second of
        its block, 0 if unknown.
        """

    async def read(self, after: int, limit: int, since: int) -> LogPage | None:
        """Return at most `limit` notices of the log after a number, `None` on failure.

        An adapter that is read by time begins at the second `since` instead.
        """

    async def query(self, query: Query) -> list[Notice] | None:
        """Return the notices that a query asks for, in ascending order, `None` on failure."""

    async def hooks(self) -> tuple[Hook, ...] | None:
        """Return the subscriptions that the adapter lists, `None` on failure."""

    async def hook(
        self, endpoint: str, types: tuple[str, ...] | None, metadata: tuple[str, ...]
    ) -> bool | None:
        """Subscribe an endpoint, to everything if `types` is `None`.

        Returns whether the adapter accepts, `None` if that is unclear.
        """

    async def drop(self, subscription: str) -> None:
        """Remove a subscription."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The properties of an adapter over HTTP."""

    chain_id: str = ""
    """The value that a public adapter appends to the metadata."""
    environments: tuple[str, ...] = ()
    """The environments for which a public adapter is asked, empty for all that it knows."""
    token: str = ""
    """The bearer token that the adapter needs, empty if it needs none."""
    timeout: float = 10.0
    """The longest time of a call, in seconds."""


class HttpAdapter:
    """An adapter behind the HTTP interface of ID-10."""

    def __init__(self, url: str, profile: Profile, session: aiohttp.ClientSession) -> None:
        self._url = url.rstrip("/")
        self._profile = profile
        self._session = session
        self._timeout = aiohttp.ClientTimeout(total=profile.timeout)
        self.fault = ""
        self._headers = {"Authorization": f"Bearer {profile.token}"} if profile.token else {}

    async def _base(self) -> str | None:
        """Return the URL of the interface, `None` if the adapter serves no known version."""
        return f"{self._url}/api/v2"

    async def _ask(self, method: str, path: str, **how: Any) -> "HttpAnswer | None":
        """Send a request to a path of the interface and return the answer.

        Returns `None` without an answer.
        """
        base = await self._base()
        return None if base is None else await self._send(method, base + path, **how)

    async def _send(self, method: str, url: str, **how: Any) -> "HttpAnswer | None":
        """Send a request to a URL and return the answer.

        Returns `None` without an answer, and for an answer of more than `MOST_ANSWER` bytes.
        """
        how.setdefault("timeout", self._timeout)
        try:
            # Ids may be `.` or `..`. The path is marked as encoded, so that these segments are not
            # resolved.
            async with self._session.request(
                method, URL(url, encoded=True), headers=self._headers, allow_redirects=False, **how
            ) as response:
                body = await response.content.read(MOST_ANSWER)
                # `read` may return less than the rest of the body.
                while len(body) < MOST_ANSWER and not response.content.at_eof():
                    body += await response.content.read(MOST_ANSWER - len(body))
                if not response.content.at_eof():
                    self.fault = f"its answer has more than {MOST_ANSWER:,} bytes"
                    return None
                is_answer = response.status < 500 and response.status not in {401, 403, 408, 429}
                self.fault = "" if is_answer else f"status {response.status}"
                return HttpAnswer(response.status, response.content_type, body)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            self.fault = cause_of(error, self._timeout.total)
            return None

    async def misfit(self) -> str:
        """Return the reason why the adapter does not have this interface, empty if it has it.

        Asks for an id that no event has. An adapter with this interface then answers with
        problem+json.
        """
        answer = await self._ask("GET", "/publications/-")
        if answer is not None and answer.status in {401, 403}:
            return f"{self._url} refuses the token: status {answer.status}"
        if (
            answer is not None
            and answer.status == 404
            and answer.kind != "application/problem+json"
        ):
            return (
                f"{self._url} does not have this interface; for a public adapter set profile ="
                " 'legacy'"
            )
        return ""

    async def publish(self, event: Event) -> Answer:
        """POST the event to `/publishEvent`.

        Only problem+json counts as a refusal. Other errors may come from a proxy in between, so
        they are unclear.
        """
        answer = await self._ask("POST", "/publishEvent", json=event.body())
        if answer is None:
            return Unknown(self.fault or "no answer")
        if answer.status in {200, 201}:
            time = answer.json()
            return Yes(time if type(time) is int and time >= 0 else 0)
        if answer.status in NO_STATUSES and answer.kind == "application/problem+json":
            problem = answer.json()
            detail = problem.get("type", "") if isinstance(problem, dict) else ""
            if detail == "urn:ied:already-published":
                return Yes(0)
            return No(f"{answer.status} {detail}"[:200])
        return Unknown(f"status {answer.status}")

    async def probe(self, event_id: str, since: int, entity: str, second: int = 0) -> ProbeAnswer:  # noqa: ARG002  # asked for by its id
        """GET `/publications/{id}`, and return whether the network has the id."""
        answer = await self._ask("GET", f"/publications/{quote(event_id, safe='')}")
        if answer is None or answer.status not in {200, 404}:
            return ProbeAnswer(None)
        if answer.status == 404:
            return ProbeAnswer(False if answer.kind == "application/problem+json" else None)
        body = answer.json()
        if not isinstance(body, dict) or not isinstance(body.get("networks"), list):
            return ProbeAnswer(None)
        states = [network.get("state") for network in body["networks"] if isinstance(network, dict)]
        return ProbeAnswer(any(state in {"published", "seen"} for state in states))

    async def read(self, after: int, limit: int, since: int) -> LogPage | None:  # noqa: ARG002  # read by number
        """GET `/events?all=true&after=…`."""
        notices = await self._notices({"all": "true", "limit": str(limit), **_after(after)})
        if notices is None:
            return None
        return LogPage(notices, complete=len(notices) < limit)

    async def _notices(
        self, parameters: Mapping[str, str], **how: Any
    ) -> tuple[Notice, ...] | None:
        """GET `/events` and return the notices.

        Returns `None` if there is no answer, or if a row has no number.
        """
        answer = await self._ask("GET", f"/events?{urlencode(parameters)}", **how)
        if answer is None:
            return None
        if answer.status != 200:
            self.fault = f"it answers with status {answer.status} when it is asked for events"
            return None
        rows = answer.json()
        if not isinstance(rows, list):
            self.fault = "its events are not a JSON list"
            return None
        notices = tuple(notice for notice in map(_quarantined_row, rows) if notice is not None)
        if len(notices) != len(rows):
            self.fault = "an event in its list has no number"
            return None
        return notices

    async def query(self, query: Query) -> list[Notice] | None:
        """GET `/events` with the client's parameters."""
        parameters = {"startDate": str(query.start), "endDate": str(query.end)}
        if query.environment is not None:
            parameters["envM"] = query.environment
        parameters |= {"limit": str(query.limit), **_after(query.after)}
        if query.all:
            parameters["all"] = "true"
        notices = await self._notices(parameters)
        return None if notices is None else list(notices)

    async def hooks(self) -> tuple[Hook, ...] | None:
        """GET `/subscribe`. Entries without an endpoint are ignored."""
        answer = await self._ask("GET", "/subscribe")
        entries = None if answer is None or answer.status != 200 else answer.json()
        if not isinstance(entries, list):
            return None
        return tuple(
            Hook(str(entry.get("subscriptionId", "")), entry["notificationEndpoint"])
            for entry in entries
            if isinstance(entry, dict) and isinstance(entry.get("notificationEndpoint"), str)
        )

    async def hook(
        self, endpoint: str, types: tuple[str, ...] | None, metadata: tuple[str, ...]
    ) -> bool | None:
        """POST to `/subscribe/all`, or to `/subscribe` if there are types."""
        body: dict[str, object] = {"notificationEndpoint": endpoint}
        if types is not None:
            body["eventTypes"] = list(types)
            if metadata:
                body["metadata"] = list(metadata)
        path = "/subscribe/all" if types is None else "/subscribe"
        answer = await self._ask("POST", path, json=body)
        if answer is None or answer.status >= 500 or answer.status in {401, 403, 408, 429}:
            return None
        return answer.status in {200, 201, 204}

    async def drop(self, subscription: str) -> None:
        """DELETE `/subscribe/{subscription}`."""
        await self._ask("DELETE", f"/subscribe/{quote(subscription, safe='')}")


def _after(number: int) -> dict[str, str]:
    """Return the parameter `after` of a query for the events after a number.

    It is an `id`, which is one less than the number. A query for the whole log does not have it.
    """
    return {"after": str(number - 1)} if number else {}


def cause_of(error: BaseException, seconds: float | None = None) -> str:
    """Return the reason why a request had no answer, in a few plain words.

    `seconds` is the timeout of the request, `None` if it is not to be named.
    """
    if isinstance(error, TimeoutError):
        return "no answer" if seconds is None else f"no answer within {seconds:g} s"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the host name is not known"
    if isinstance(error, aiohttp.ClientSSLError):
        return "the TLS certificate or handshake is refused"
    # aiohttp wraps the operating system's error.
    inner = getattr(error, "os_error", error)
    if isinstance(inner, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror.lower()
    return f"{type(error).__name__}: {error}"[:200]


class HttpAnswer(NamedTuple):
    """An answer of an adapter."""

    status: int
    kind: str
    """The content type."""
    body: bytes

    def json(self) -> object:
        """Return the value of a JSON body, `None` if the body is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def _quarantined_row(row: object) -> Notice | None:
    """Return the notice of a row, `None` if the row has no number.

    A row that is not an event becomes a notice without an id, so that the log has no gap at its
    number.
    """
    try:
        return parse_row(row)
    except BadEventError as error:
        if not isinstance(row, dict) or type(number := row.get("id")) is not int or number < 0:
            return None
        return Notice(
            number + 1,
            0,
            Event("", "", (), entity="", previous=""),
            id=None,
            signer="",
            fault=f"malformed: {error}"[:200],
            block=block_of(row),
        )
