"""If other parachains' messages fill the blocks, how long does it take to read a thousand keys?"""

from pathlib import Path

from pubsub_emulator import Scenario, Simulation, load_scenario


def read(scenario: Scenario) -> None:
    """Run it, and print the blocks that brought keys."""
    simulation = Simulation(scenario)
    while simulation.network.number < scenario.relay_blocks:
        for record in simulation.step().records:
            if record.chain == 3000 and record.outcome is not None and record.outcome.deliveries:
                ledger, plan = record.outcome.ledger, record.outcome.plan
                sizes = (
                    f"messages {ledger.messages_bytes:,}, budget {ledger.budget:,}, used"
                    f" {ledger.used:,}"
                )
                end = "" if plan.cursor is None else ", then stopped"
                print(
                    f"  relay block {record.included_at}: {sizes}; {len(record.outcome.deliveries)}"
                    f" keys{end}"
                )


loaded = load_scenario(Path(__file__).with_suffix(".toml"))
reader = loaded.subscribers[0]
idle = loaded.model_copy(update={"subscribers": (reader.model_copy(update={"load": ()}),)})
print("without messages")
read(idle)
print("with messages")
read(loaded)
