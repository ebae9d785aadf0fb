"""How old is a price when a parachain gets it, and what does a block pay for eighty of them?"""

from pathlib import Path
from statistics import median

from pubsub_emulator import Metrics, ParaId, Simulation, load_scenario

EXCHANGE = ParaId(3000)

scenario = load_scenario(Path(__file__).with_suffix(".toml"))
simulation, metrics, ledgers, unpruned = Simulation(scenario), Metrics(), [], []
while simulation.network.number < scenario.relay_blocks:
    step = simulation.step()
    metrics.note(simulation.network, step)
    for record in step.records:
        if record.chain == EXCHANGE and record.outcome is not None:
            ledgers.append(record.outcome.ledger)
            unpruned.append(sum(size for _, size in record.unpruned))

ages = metrics.subscribers[EXCHANGE].latency
settled = slice(10, None)  # the first blocks bring every price for the first time
prices = [ledger.proof_bytes - ledger.static_bytes for ledger in ledgers]
print(f"{ages.total()} prices delivered; relay blocks from publish to delivery: {dict(ages)}")
print(f"a block proves its new prices with {median(prices[settled]):,.0f} bytes;")
print(f"proving all eighty again would take {median(unpruned[settled]):,.0f}")
