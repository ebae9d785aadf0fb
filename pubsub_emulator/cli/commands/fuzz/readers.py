"""Every reader of what a stranger may have made: its limits, what a bad input gets, and its target of `pubsub fuzz`.

`docs/untrusted.md` is made of this table. A limit is the constant that the reader uses, by module and name.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Limit:
    """The most of something; `constant` is `module:NAME`, `unit` what it counts: bytes if empty or `of …`.

    A name may lead to a field, `NAME.field`: of a class, to its default.
    """

    constant: str
    unit: str = ""

    def value(self) -> int:
        """The number."""
        module, _, names = self.constant.partition(":")
        found: Any = import_module(f"pubsub_emulator.{module}")
        for name in names.split("."):
            found = getattr(found() if isinstance(found, type) else found, name)
        return int(found)

    def shown(self) -> str:
        """The limit in words."""
        value = self.value()
        if self.unit and not self.unit.startswith("of "):
            return f"{value:,} {self.unit}"
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value % size == 0:
                return f"{value // size:,} {name} {self.unit}".rstrip()
        return f"{value:,} bytes {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Row:
    """One reader, by file and name. `more` is what bounds it beside the numbers; not every one has a `target`."""

    what: str
    reader: str
    limits: tuple[Limit, ...]
    more: str
    bad: str
    target: str


_FILE: Final = (Limit("emulator.untrusted:MOST_BYTES"),)
_TEXT: Final = (Limit("emulator.untrusted:MOST_TEXT"),)
_ANSWER: Final = (Limit("client.rpc:MAX_MESSAGE"),)
_CANDIDATE: Final = "runtime.parachain.block:MAX_CANDIDATE_BYTES"
_LINE: Final = "one line with file and field; exit code 2"
_CALL: Final = "node.pool:MOST_EXTRINSIC"
_REFUSED: Final = "one line with what the node answered; exit code 4"

ROWS: Final = (
    Row(
        "any JSON document in a file or an answer",
        "emulator/untrusted.py::parse_json",
        (
            Limit("emulator.untrusted:MOST_DEPTH", "levels"),
            Limit("emulator.untrusted:MOST_VALUES", "values, counted as commas and opening brackets"),
        ),
        "NaN and infinities are none",
        "as its row says",
        "node-json",
    ),
    Row(
        "a block",
        "runtime/parachain/block.py::Candidate.decode",
        (
            Limit(_CANDIDATE),
            Limit("runtime.parachain.block:MAX_PROOF_NODES", "proof nodes"),
            Limit("runtime.framework.message_chains:MAX_MESSAGES", "messages"),
            Limit("primitives.header:MAX_DIGEST_ITEMS", "digest items"),
        ),
        "",
        "`ScaleError`; decoded, a verdict of PS-52",
        "candidate",
    ),
    Row(
        "the state below a block",
        "runtime/parachain/validate.py::validate_block",
        (),
        "as its file",
        "`BadState`, no verdict on the block",
        "state",
    ),
    Row(
        "a read proof",
        "trie/proof.py::read_proof",
        (),
        "as its file; work is bounded by the nodes present",
        "`MissingNode`, `BadNode`, `UnusedNodes`",
        "proof",
    ),
    Row(
        "a compact proof",
        "trie/compact.py::decode_compact",
        (Limit("trie.compact:DEFAULT_LIMIT", "steps of the search for child tries"),),
        "as its file",
        "`BadNode`",
        "compact",
    ),
    Row(
        "an upward message",
        "xcm/message.py::decode",
        (
            Limit("runtime.relay.host_configuration:HostConfiguration.max_upward_message_size"),
            Limit("xcm.schema:MAX_XCM_DECODE_DEPTH", "levels"),
            Limit("xcm.schema:MAX_INSTRUCTIONS_TO_DECODE", "instructions"),
            Limit("xcm.assets:MAX_ITEMS_IN_ASSETS", "assets of a list"),
        ),
        "",
        "`XcmDecodeError`; on chain `ProcessingFailed`",
        "xcm",
    ),
    Row(
        "a header",
        "primitives/header.py::Header.decode",
        (Limit("primitives.header:MAX_DIGEST_ITEMS", "digest items"),),
        "as its file",
        "`ScaleError`",
        "header",
    ),
    Row(
        "a runtime",
        "runtime/pallet_subscriber/config.py::decode_spec",
        (),
        "as its message; keys distinct and ascending, a walk that can end",
        "`ScaleError`, `ImpossibleConfig`; on chain nothing changes",
        "runtime",
    ),
    Row(
        "a scenario",
        "emulator/settings/reading.py::read",
        (
            *_TEXT,
            Limit("emulator.scenario.check:MOST_CHAINS", "parachains"),
            Limit("emulator.scenario.check:MOST_KEYS", "keys"),
            Limit("emulator.scenario.check:MOST_BLOCKS", "blocks per turn"),
            Limit("emulator.scenario.check:MOST_MESSAGES", "messages per block"),
        ),
        "",
        _LINE,
        "scenario",
    ),
    Row(
        "a session",
        "cli/session/saved.py::read",
        (
            *_FILE,
            Limit("cli.session.saved:MOST_COMMANDS", "commands"),
            Limit("cli.session.saved:MOST_BLOCKS", "blocks"),
        ),
        "only commands that build or change the network",
        _LINE,
        "session",
    ),
    Row("a fixture", "emulator/fixtures.py::read_fixture", _FILE, "the limits of a block", _LINE, "fixture"),
    Row(
        "a case",
        "laboratory/cases.py::read_case",
        (*_FILE, Limit(_CANDIDATE, "of stuffing")),
        "the limits of a block",
        _LINE,
        "case",
    ),
    Row(
        "a difference of two verifiers",
        "laboratory/differences.py::read_difference",
        _FILE,
        "the limits of a block",
        _LINE,
        "difference",
    ),
    Row(
        "an exported state",
        "client/state_file.py::read_state",
        (Limit("client.state_file:MOST_BYTES"), Limit("client.state_file:LONGEST_KEY", "of a key")),
        "",
        _LINE,
        "exported-state",
    ),
    Row(
        "an answer of a node",
        "client/rpc.py::Rpc",
        (*_ANSWER, Limit("client.rpc:MAX_WAITING", "unread notifications")),
        "unpacked piece by piece; types by `client/answers.py`",
        _REFUSED,
        "lying-node",
    ),
    Row(
        "read proofs in answers of a forked node",
        "client/live_state.py::TrieSource",
        (
            *_ANSWER,
            Limit("client.live_state:MOST_NODES", "of nodes"),
            Limit("trie.lazy:MOST_LOADS", "nodes of one walk"),
            Limit("trie.partial:MAX_KEY", "of a key"),
        ),
        "what the wanted node refers to; others are dropped",
        "`StateUnavailable`, `BadNode`: the step changes nothing; exit code 4",
        "state-answer",
    ),
    Row(
        "a real inherent",
        "spark_audit/real_proofs/relay_proofs.py::read_relay_proof",
        _FILE,
        "",
        _LINE,
        "relay-proof",
    ),
    Row(
        "answers of a node in files",
        "spark_audit/real_proofs/node_data.py::read_node_data",
        _FILE,
        "",
        _LINE,
        "node-json",
    ),
    Row("a finding", "spark_audit/judge/finding_file.py::read_finding", _FILE, "", _LINE, "finding"),
    Row(
        "evidence",
        "spark_audit/judge/evidence.py::judge",
        (),
        "as its file; the limits of a block",
        "`EvidenceError`",
        "evidence",
    ),
    Row(
        "a manifest",
        "spark_audit/history/manifest.py::read_manifest",
        (Limit("spark_audit.history.manifest:MOST_BYTES"),),
        "names, ranges and places are checked",
        "quarantined; exit code 3",
        "manifest",
    ),
    Row(
        "a table",
        "spark_audit/history/reader.py::read_file",
        (
            Limit("spark_audit.history.unpack:MOST_UNPACKED", "of all row groups unpacked"),
            Limit("spark_audit.history.unpack:MOST_VALUES", "values of a row group"),
            Limit("spark_audit.history.unpack:MOST_FILE_VALUES", "values of all"),
        ),
        "by the pages themselves; bytes as its manifest states, digests are checked",
        "quarantined; exit code 3",
        "table",
    ),
    Row(
        "a request to a node",
        "node/rpc/dispatch.py::Dispatcher",
        (
            Limit("node.rpc.dispatch:REQUEST.bytes"),
            Limit("node.rpc.dispatch:REQUEST.depth", "levels"),
            Limit("node.rpc.dispatch:REQUEST.values", "values"),
            Limit("node.rpc.dispatch:REQUEST.batch", "calls in a batch"),
        ),
        "limits of each method",
        "the error of ND-2 to ND-4; never `-32603`",
        "request",
    ),
    Row(
        "the arguments of a runtime function",
        "node/rpc/legacy_state.py::run",
        (Limit("node.rpc.legacy_state:MOST_ARGUMENTS"),),
        "run beside the event loop",
        "error 4003",
        "request",
    ),
    Row(
        "an extrinsic",
        "node/pool/pool.py::check",
        (Limit(_CALL), Limit("runtime.framework.calls:MAX_CALL_DEPTH", "levels of calls")),
        "checked beside the event loop",
        "`UndecodableExtrinsic`, `InvalidTransaction`; error 1001",
        "extrinsic",
    ),
    Row(
        "a journal of a node",
        "node/chain/journal.py::read_journal",
        (Limit("node.chain.journal:MOST_BYTES"), Limit("node.chain.journal:MOST_LINE", "of a line")),
        "a last line that was cut is left out, with a word",
        "file and line; exit code 2",
        "journal",
    ),
    Row(
        "a node's metadata",
        "client/metadata.py::parse_metadata",
        _ANSWER,
        "each length within the bytes left",
        "`BadAnswer`; exit code 4",
        "metadata",
    ),
    Row(
        "a block's events, storage values",
        "client/node.py::decode_events",
        (
            *_ANSWER,
            Limit("client.decode:MAX_DEPTH", "levels"),
            Limit("client.decode:FREE_VALUES", "values and 16 per byte"),
        ),
        "",
        "`BadAnswer`; exit code 4",
        "events",
    ),
    Row(
        "a real block's inherent",
        "spark_audit/fetch/inherent.py::relay_proof",
        (),
        "as its block; as a block's events",
        "`WrongBlock`; exit code 2",
        "inherent",
    ),
    Row(
        "rows of exported tables",
        "spark_audit/fetch/exports.py::ExportSource",
        (Limit("spark_audit.history.unpack:MOST_FIELD", "of a field, a line and a page"),),
        "as deep as Python's parser goes",
        "place and field; exit code 2",
        "export",
    ),
    Row(
        "a filter of events",
        "events/filters/codec.py::from_json",
        (
            Limit("events.filters.codec:MAX_BYTES"),
            Limit("events.filters.algebra:MAX_DEPTH", "levels"),
            Limit("events.filters.algebra:MAX_FILTERS", "filters"),
        ),
        "",
        "`BadFilter`",
        "filter",
    ),
    Row(
        "a call of the event service",
        "events/subscriptions/streams.py::Streams",
        (
            Limit("events.subscriptions.registry:PER_CLIENT", "subscriptions of a client"),
            Limit("events.subscriptions.streams:Limits.streams_per_client", "streams of a client"),
            Limit("events.subscriptions.streams:Limits.streams", "streams in all"),
            Limit("events.subscriptions.streams:Limits.full_reads", "readings of the whole log"),
            Limit("events.subscriptions.streams:Limits.bound", "rows waiting for a client"),
            Limit("events.subscriptions.streams:Limits.unread_seconds", "seconds that a message waits to be read"),
        ),
        "filters as below",
        "`LimitReached`; a stream that is not read ends",
        "",
    ),
    Row(
        "a connection of gRPC",
        "events/subscriptions/grpc_server.py::serving",
        (
            Limit("events.subscriptions.grpc_server:MOST_BYTES", "of a request"),
            Limit("events.subscriptions.grpc_server:HANDSHAKE_SECONDS", "seconds to begin"),
            Limit("events.subscriptions.grpc_server:KEEPALIVE_SECONDS", "seconds of silence"),
            Limit("events.subscriptions.grpc_server:PING_SECONDS", "seconds to answer a ping after it"),
        ),
        "of the event service, bytes as its filters",
        "`RESOURCE_EXHAUSTED`, `INVALID_ARGUMENT`; the connection ends",
        "",
    ),
    Row(
        "a call of PRISM's service",
        "prism/service/rpc.py::PrismFront",
        (
            Limit("prism.service.rpc:MOST_FILTERS", "filters, and statuses of one"),
            Limit("prism.service.service:PrismLimits.schedules_per_minute", "operations a minute of a client"),
        ),
        "as a connection of gRPC",
        "`RESOURCE_EXHAUSTED`, `INVALID_ARGUMENT`",
        "",
    ),
    Row(
        "a body sent over HTTP",
        "serving/body.py::read_body",
        (
            Limit("serving.body:PATIENCE", "seconds"),
            Limit("distributor.service.interface:BODY_SECONDS", "seconds at a distributor"),
        ),
        "bytes as its row says; the key is checked before",
        "status 408 or 413",
        "",
    ),
    Row(
        "a cursor",
        "events/subscriptions/cursor.py::decode_cursor",
        (),
        "34 characters; one text per cursor",
        "`BadCursor`",
        "cursor",
    ),
    Row(
        "an anchored object",
        "prism/core/process.py::read_object",
        (Limit("runtime.pallet_prism.pallet:MOST_OBJECT"),),
        "fields of `prism.proto`, canonical",
        "ignored, or `REJECTED` with a reason",
        "prism",
    ),
    Row(
        "metadata of a transaction of Cardano",
        "prism/core/metadata.py::object_of",
        (
            Limit("prism.core.metadata:MOST_BYTES"),
            Limit("runtime.pallet_prism.pallet:MOST_OBJECT", "of an object"),
            Limit("prism.core.metadata:MOST_PIECE", "of a piece"),
        ),
        "64 levels",
        "no object",
        "metadatum",
    ),
    Row(
        "a publication sent to a distributor",
        "distributor/event.py::parse_publication",
        (Limit("distributor.service.problems:MOST_BODY"),),
        "as deep as Python's parser goes",
        "a problem document, 400 or 413",
        "publication",
    ),
    Row(
        "the answer of an adapter, the keys of an issuer",
        "distributor/service/adapters.py::HttpAdapter",
        (
            Limit("distributor.service.adapters:MOST_ANSWER"),
            Limit("distributor.service.access:MOST_KEYS", "of keys"),
        ),
        "no redirect is followed",
        "the adapter counts as unreachable; a token of unknown key is 401",
        "",
    ),
    Row(
        "a distributor's settings",
        "distributor/service/config.py::parse_config",
        (*_TEXT, Limit("distributor.service.config:MOST_NETWORKS", "networks")),
        "",
        _LINE,
        "distributor-config",
    ),
    Row(
        "an entry of an EVM contract's log",
        "distributor/adapter/evm/contract.py::read_entry",
        (Limit("distributor.adapter.evm.contract:MOST_DATA"),),
        "in the order that the contract counts; fees, gas and blocks of the node's answers have bounds too",
        "quarantined; no event of the contract: `BadAnswer`, the log is read again",
        "evm-entry",
    ),
    Row("a scenario of subnets", "icrc72/scenario_file.py::parse", _TEXT, "", _LINE, "canister-scenario"),
    Row(
        "a request of an agent",
        "icrc72/port/envelope.py::read_request",
        (
            Limit("icrc72.port.envelope:MOST_BODY"),
            Limit("icrc72.port.envelope:MOST_DEPTH", "levels"),
            Limit("icrc72.port.envelope:MOST_PATHS", "paths"),
            Limit("icrc72.port.envelope:MOST_LABELS", "labels of a path"),
            Limit("icrc72.port.envelope:MOST_DELEGATIONS", "delegations"),
            Limit("icrc72.port.server:MOST_ROUNDS", "rounds of waiting"),
            Limit("icrc72.port.server:MOST_REQUESTS", "answers kept"),
            Limit("icrc72.port.proxy:MOST_KEPT", "messages kept"),
        ),
        "it ends within six minutes",
        "`BadRequest`; status 400 or 413",
        "ingress",
    ),
    Row(
        "a message to a canister",
        "icrc72/ic/candid/decode.py::Decoder.decode",
        (
            Limit("icrc72.ic.schedule:MessageLimits.message_bytes"),
            Limit("icrc72.ic.candid.wire:DEPTH", "levels"),
            Limit("icrc72.ic.candid.wire:SPARE", "values and 16 per byte"),
        ),
        "",
        "`CandidError`; the call traps",
        "candid",
    ),
    Row(
        "a query of an orchestrator",
        "icrc72/orchestrator/queries.py::Queries",
        (
            Limit("icrc72.orchestrator.queries:MOST_SLICES", "slices"),
            Limit("icrc72.orchestrator.queries:MOST_STEPS", "steps"),
        ),
        "",
        "`GenericError`",
        "",
    ),
    Row(
        "the module of a canister",
        "icrc72/ic/wasm/module.py::load",
        (
            Limit("icrc72.ic.wasm.module:MODULE_BYTES", "of it unpacked"),
            Limit("icrc72.ic.wasm.canister:WasmLimits.memory_bytes", "of memory"),
            Limit("icrc72.ic.wasm.canister:WasmLimits.stable_bytes", "of stable memory"),
            Limit("icrc72.ic.wasm.canister:WasmLimits.instructions", "instructions of a message"),
        ),
        "",
        "`ModuleError`; a message over its limits traps",
        "canister-module",
    ),
)
