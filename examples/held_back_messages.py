"""Can a collator hash a parachain's downward messages away, so that they are lost?"""

import runpy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pubsub_emulator import (
    LAST_PROCESSED_DOWNWARD,
    SHIPPED,
    BlockRecord,
    CollatorSettings,
    Rules,
    Simulation,
    Storage,
    Verdict,
    load_scenario,
    read_rules,
    register_strategy,
)

HERE = Path(__file__).resolve().parent
register_strategy(runpy.run_path(str(HERE / "cheats" / "hold_back.py"))["hold_back"])
scenario = load_scenario(HERE / "held_back_messages.toml")
[bank] = scenario.subscribers
[load] = bank.load
sent = load.downward_messages * (load.last_block + 1 - load.first_block)


def blocks_with(censors: int, rules: Rules) -> Iterator[BlockRecord]:
    """Run the scenario with so many collators that hold back, and yield the bank's blocks."""
    collators = [CollatorSettings(strategies=("hold-back",))] * censors
    changed = bank.model_copy(update={"collators": (*collators, *bank.collators[censors:])})
    simulation = Simulation(scenario.model_copy(update={"subscribers": (changed,)}), rules=rules)
    while simulation.network.number < scenario.relay_blocks:
        yield from (each for each in simulation.step().records if each.chain == bank.para)


def show(record: BlockRecord) -> None:
    """Print the messages of a valid block, and the mark of the last processed one after it."""
    messages = record.candidate.inherent.messages
    mark = record.outcome and LAST_PROCESSED_DOWNWARD.get(Storage(record.outcome.state))
    if mark and record.included_at < 7:
        print(
            f"    relay block {record.included_at}: {len(messages.downward)} in full,"
            f" {len(messages.hashed_downward)} hashed, {messages.weight:,} bytes;"
            f" last processed: sent_at {mark.sent_at}, reverse_idx {mark.reverse_idx}"
        )


for name in ("shipped", "downward_advanced"):
    print(name)
    rules = SHIPPED if name == "shipped" else read_rules(HERE / "rules" / f"{name}.py")
    for censors in range(3):
        print(f"  {censors} of 2 collators hold back")
        received: Counter[tuple[int, bytes]] = Counter()
        waits = []
        refused = 0
        for record in blocks_with(censors, rules):
            if record.refusal and record.refusal.verdict is Verdict.ADVANCEMENT_RULE:
                refused += 1
            if record.outcome is not None:
                show(record)
                taken = record.candidate.inherent.messages.downward
                received.update((each.sent_at, each.msg) for each in taken)
                waits += [record.included_at - each.sent_at for each in taken]
        print(
            f"    {len(waits)} of {sent} received, none twice: {received.total() == len(received)};"
            f" wait at most {max(waits, default=0)}; {refused} blocks AdvancementRule"
        )
