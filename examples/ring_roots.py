"""What does it cost a parachain to know that no ring root has changed, and what when one has?"""

from pathlib import Path
from statistics import median

from pubsub_emulator import Simulation, load_scenario

scenario = load_scenario(Path(__file__).with_suffix(".toml"))
simulation = Simulation(scenario)
quiet: dict[int, list[int]] = {}
news: dict[int, list[int]] = {}
while simulation.network.number < scenario.relay_blocks:
    for record in simulation.step().records:
        if (
            record.outcome is not None
            and record.outcome.ledger.publishers
            and record.included_at > 10
        ):
            ledger = record.outcome.ledger
            kind = news if record.outcome.deliveries else quiet
            kind.setdefault(record.chain, []).append(ledger.used - ledger.map_charges)

print("bytes charged to a block for ring roots, at median")
for subscriber in scenario.subscribers:
    unchanged, changed = median(quiet[subscriber.para]), median(news[subscriber.para])
    count = len(news[subscriber.para])
    print(
        f"  {subscriber.name}: {unchanged:,.0f} when none changed, {changed:,.0f} when one did"
        f" ({count} blocks)"
    )
