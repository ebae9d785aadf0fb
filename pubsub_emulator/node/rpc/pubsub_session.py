"""The `pubsub_*` methods that describe the scenario, parachains, runtimes and relay blocks."""

from itertools import chain as chained

from pubsub_emulator.emulator.network.acting import newest_runtime
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.chain.block import RELAY, Moment, StoredBlock
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.pubsub_read import PARA, RELAY_BLOCK, moment_at
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId


@method("pubsub_scenario")
def scenario(call: RpcCall) -> Json:
    """Return a summary of the scenario and of the other settings that never change.

    The sources of forked states are file names or URLs. They are only returned with `--dev`.
    """
    simulation = call.node.live.simulation
    network = call.node.network
    settings = simulation.scenario
    keys: dict[int, int] = {}
    for group in settings.publishers:
        keys |= dict.fromkeys(group.paras, group.keys)
    subscribed = chained.from_iterable(subscriber.subscribe for subscriber in settings.subscribers)
    missing_keys = (subscription.missing_keys for subscription in subscribed)
    return {
        "name": settings.name,
        "relayBlocks": settings.relay_blocks,
        "publishers": [{"para": para, "keys": keys[para]} for para in settings.publisher_ids()],
        "missingKeys": max(missing_keys, default=0),
        "accounts": simulation.accounts,
        "first": network.relay.first,
        "maxValueLength": network.config.relay.pubsub.max_value_length,
        "parachains": [
            {"para": para, "onDemand": chain.pace.on_demand}
            for para, chain in network.parachains.items()
        ],
        "forks": [
            {
                "chain": chain,
                "root": hexed(fork.root),
                "source": fork.source if call.node.dev else None,
            }
            for chain, fork in simulation.forks.by_chain().items()
        ],
    }


@method("pubsub_parachains")
async def parachains(call: RpcCall) -> Json:
    """Return the newest block of every parachain, its collators, and its unsent messages."""
    heads = call.node.timeline.newest.heads

    def read(live: LiveNetwork) -> list[dict[str, object]]:
        return [
            _parachain_json(chain, heads[para]) for para, chain in live.network.parachains.items()
        ]

    return await call.node.control.aside(read)


def _parachain_json(chain: Parachain, head: StoredBlock) -> dict[str, object]:
    """Return a parachain with its newest block, its collators, and its unsent messages."""
    cheating = [collator for collator in chain.collators if collator.strategies and collator.rate]
    return {
        "para": chain.para,
        "number": head.number,
        "hash": hexed(head.hash),
        "subscribedKeys": sum(map(len, chain.spec().subscriptions.values())),
        "collators": len(chain.collators),
        "cheating": len(cheating),
        "offline": chain.offline,
        "waiting": len(chain.publishes) + len(chain.upward) + len(chain.horizontal),
    }


@method("pubsub_runtime", PARA)
async def runtime(call: RpcCall, chain: ParaId) -> Json:
    """Return the newest runtime of a parachain as SCALE bytes, and whether it is in force.

    A runtime that was sent to the relay chain takes effect some blocks later.
    """
    if chain not in call.node.timeline.views:
        return None

    def read(live: LiveNetwork) -> dict[str, object]:
        newest = newest_runtime(live.network, chain)
        return {
            "code": hexed(newest.encode()),
            "inForce": newest == live.network.parachain(chain).spec(),
        }

    return await call.node.control.aside(read)


@method("pubsub_block", RELAY_BLOCK)
def block(call: RpcCall, at: int | bytes) -> Json:
    """Return a relay block and the candidates judged for it, or null if it is not stored."""
    moment = moment_at(call, RELAY, at)
    if moment is None:
        return None
    return {
        "number": moment.number,
        "hash": hexed(moment.relay.hash),
        "blocks": list(map(_judged_json, moment.records)),
        "idle": [{"para": para, "why": why} for para, why in moment.idle.items()],
        "failures": failures(moment),
    }


def _judged_json(record: BlockRecord) -> dict[str, object]:
    """Return a judged candidate without its bytes."""
    outcome = record.outcome
    refusal = record.refusal
    deliveries = () if outcome is None else outcome.deliveries
    return {
        "para": record.chain,
        "number": record.candidate.header.number,
        "hash": hexed(record.candidate.hash()),
        "verdict": None if refusal is None else refusal.verdict.value,
        "evidence": [] if refusal is None else [offence.detail for offence in refusal.evidence],
        "strategy": record.strategy,
        "delivered": len(deliveries),
        "removed": sum(delivery.value is None for delivery in deliveries),
        "stopped": outcome is not None and outcome.plan.cursor is not None,
    }


def failures(moment: Moment) -> list[dict[str, object]]:
    """Return the upward messages of a relay block that failed.

    `instruction` counts from 1. It is null if the message was not executed at all.
    """
    failed: list[dict[str, object]] = []
    for message in moment.executions:
        execution = message.execution
        if execution.rejected is not None:
            failed.append(
                {"para": message.para, "instruction": None, "why": str(execution.rejected)}
            )
        failed += [
            {
                "para": message.para,
                "instruction": failure.index + 1,
                "why": str(failure.cause or failure.error),
            }
            for failure in execution.failures
        ]
    return failed
