"""`pubsub simulate` and `pubsub score`: large histories, and audits compared with the truth."""

from statistics import median_low

from pubsub_emulator.cli.base.own_process import spare_memory
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.audit.run import uncommitted
from pubsub_emulator.cli.exits import FINDINGS, INCOMPLETE
from pubsub_emulator.cli.screen import files, say, stage, table
from pubsub_emulator.pages.words import size
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.spark_audit.choice import choose_engine, may_be_spark, open_mapper
from pubsub_emulator.spark_audit.simulate.run import Simulated, SimulationSettings, simulate
from pubsub_emulator.spark_audit.simulate.score import score

MOST_SHOWN = 12


def run_simulate(
    simulation: SimulationSettings, out: str, *, master: str | None, engine: str
) -> Result:
    """Simulate many networks into one history, and print the totals."""
    if not may_be_spark(engine, master):
        spare_memory()
    networks = simulation.networks
    title = f"simulating {counted(networks, 'network')} of {counted(simulation.blocks, 'block')} "
    with stage(title, networks) as advance:
        try:
            simulated = simulate(
                simulation,
                out,
                lambda: open_mapper(choose_engine(engine, master, networks), master),
                lambda done, total: advance(done, total, "simulating: networks"),
            )
        except KeyboardInterrupt:
            say(
                "interrupted: complete networks and segments are kept, and the same command"
                " continues"
            )
            raise
    show_simulated(simulated)
    files(
        "written:",
        ((out, "the history, for `pubsub audit`; its table `truth` is for `pubsub score`"),),
    )
    say(f"digest: 0x{simulated.digest}")
    document = {
        "networks": len(simulated.receipts),
        "made_now": simulated.made,
        "blocks": simulated.candidates,
    }
    cheats = dict(sorted(simulated.cheats.items()))
    return Result({**document, "cheats": cheats, "history": out, "digest": f"0x{simulated.digest}"})


def show_simulated(simulated: Simulated) -> None:
    """Print the sums, and the planted cheats by strategy."""
    receipts = simulated.receipts
    cheats = simulated.cheats
    table("planted cheats", ("strategy", "blocks"), sorted(cheats.items()))
    there = len(receipts) - simulated.made
    again = f", {there} of them already present" if there else ""
    relay = sum(receipt["relay_blocks"] for receipt in receipts)
    rejected = sum(receipt["rejected"] for receipt in receipts)
    say(
        f"{counted(len(receipts), 'network')}{again}:"
        f" {counted(simulated.candidates, 'parachain block')}, {rejected:,} of them refused,"
        f" {counted(cheats.total(), 'planted cheat')}, {counted(relay, 'relay block')}"
    )
    seconds = sum(receipt["cpu_seconds"] for receipt in receipts)
    say(
        f"{seconds:,.0f} s of processor time, {1000 * seconds / simulated.candidates:.1f} ms per"
        " parachain block"
    )
    whole = median_low(receipt["median_proof"] for receipt in receipts)
    pubsub = median_low(receipt["median_pubsub_proof"] for receipt in receipts)
    total = size(sum(receipt["proof_bytes"] for receipt in receipts))
    say(f"proofs: {total} in all; median of a network {size(whole)}, {size(pubsub)} of it pub-sub")


def run_score(history: str, audit: str) -> Result:
    """Compare the findings of an audit with the cheats planted in its history."""
    scored = score(history, audit)
    rows = (
        (name, planted, scored.caught[name]) for name, planted in sorted(scored.planted.items())
    )
    table("planted cheats and findings", ("strategy", "planted", "found"), rows)
    charges_by_title = {"planted, not found": scored.missed, "found, not planted": scored.wrong}
    for title, charges in charges_by_title.items():
        for charge in charges[:MOST_SHOWN]:
            network, chain, _segment, _position, number, block, collator, code = charge
            author = "nobody" if collator is None else collator.hex()
            say(
                f"{title}: {code} in {network}, chain {chain}, block {number} {block.hex()}, by"
                f" {author}"
            )
        if len(charges) > MOST_SHOWN:
            say(f"{title}: {len(charges) - MOST_SHOWN:,} more")
    faults = [f"{fault.path}: {fault.error}" for fault in scored.faults]
    for fault in faults:
        say(f"not readable: {fault}")
    if scored.gone:
        say(
            f"lost: {scored.gone.total():,} planted cheats that the simulation counted are no"
            " longer in the history"
        )
    if scored.uncommitted:
        say(uncommitted(scored.uncommitted))
    say(
        f"planted {scored.planted.total():,}, found {scored.caught.total():,}, found without being"
        f" planted {len(scored.wrong):,}: precision {scored.precision:.6f}, recall"
        f" {scored.recall:.6f}"
    )
    document = {
        "planted": dict(sorted(scored.planted.items())),
        "found": dict(sorted(scored.caught.items())),
        "lost": dict(sorted(scored.gone.items())),
        "uncommitted_files": scored.uncommitted,
        "missed": len(scored.missed),
        "found_and_not_planted": len(scored.wrong),
        "not_readable": faults,
        "precision": scored.precision,
        "recall": scored.recall,
    }
    if scored.missed or scored.wrong or scored.gone:
        return Result(document, FINDINGS)
    return Result(document, INCOMPLETE if faults else 0)
