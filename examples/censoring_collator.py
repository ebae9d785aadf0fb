"""How long can collators who censor keep a price from a parachain?"""

from pathlib import Path

from pubsub_emulator import CollatorSettings, Metrics, ParaId, Simulation, load_scenario

EXCHANGE = ParaId(3000)

scenario = load_scenario(Path(__file__).with_suffix(".toml"))
[exchange] = scenario.subscribers
censor = CollatorSettings(strategies=("omit-publisher", "as-if-unchanged", "withheld-delivery"))
for censors in range(4):
    collators = (*(censor for _ in range(censors)), *exchange.collators[censors:])
    changed = exchange.model_copy(update={"collators": collators})
    simulation, metrics = (
        Simulation(scenario.model_copy(update={"subscribers": (changed,)})),
        Metrics(),
    )
    refused = believed = 0
    while simulation.network.number < scenario.relay_blocks:
        step = simulation.step()
        metrics.note(simulation.network, step)
        refused += len(step.refused)
        believed += sum(
            record.strategy is not None and record.refusal is None for record in step.records
        )
    waits = metrics.subscribers[EXCHANGE].latency
    print(
        f"{censors} of 4 censor: {refused} blocks refused, {believed} believed; {waits.total()}"
        f" deliveries, {sum(wait * count for wait, count in waits.items()) / waits.total():.2f}"
        f" relay blocks after the publish on average, {max(waits)} at most"
    )
