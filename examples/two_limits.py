"""Do messages fit into a block if each kind may take all that is left of it?"""

from pathlib import Path

from pubsub_emulator import (
    SHIPPED,
    ParaId,
    Rules,
    Scenario,
    Simulation,
    load_scenario,
    read_rules,
)

SHOP = ParaId(3000)
RULES = Path(__file__).resolve().parent / "rules"


def run(scenario: Scenario, rules: Rules) -> None:
    """Run it under rules, and print the fullest block, and the relay blocks without a block."""
    simulation = Simulation(scenario, rules=rules)
    taken: list[tuple[int, int, int, int]] = []
    idle: dict[int, str] = {}
    while simulation.network.number < scenario.relay_blocks:
        step = simulation.step()
        for record in step.records:
            if record.chain == SHOP and record.outcome is not None:
                messages = record.candidate.inherent.messages
                down = sum(len(each.msg) for each in messages.downward)
                across = sum(len(each.data) for _, sent in messages.horizontal for each in sent)
                taken.append((down + across, down, across, record.included_at))
        if SHOP in step.idle:
            idle[step.number] = step.idle[SHOP]
    most, down, across, number = max(taken)
    total = sum(each[0] for each in taken)
    print(f"    {len(taken)} blocks with {total:,} bytes of messages")
    print(f"    the fullest, in relay block {number}: {most:,} = {down:,} downward + {across:,}")
    if idle:
        print(f"    no block in relay blocks {min(idle)} to {max(idle)}: {idle[max(idle)]}")


loaded = load_scenario(Path(__file__).with_suffix(".toml"))
[shop] = loaded.subscribers
for size in (shop.max_pov_size, 4_000_000):
    room = size * 85 // 100 - 1_048_576
    print(f"blocks of {size:,} bytes: {room:,} are left, a sixth is {size // 6:,}")
    changed = shop.model_copy(update={"max_pov_size": size})
    scenario = loaded.model_copy(update={"subscribers": (changed,)})
    for name in ("shipped", "limit_twice", "one_limit"):
        print(f"  {name}")
        run(scenario, SHIPPED if name == "shipped" else read_rules(RULES / f"{name}.py"))
