"""Scenarios of subscribers: notifications, dead letters, interests, keys."""

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.simulation.stage import DESMOS, Stage, scenario


@scenario(26, "both networks notify, the subscriber gets one POST", "41")
def _one_post(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    world.run(60_000)
    stage.that(len(world.endpoints[DESMOS].got) == 1, f"{len(world.endpoints[DESMOS].got)} POSTs")


@scenario(27, "two subscriptions match", "41")
def _two(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    world.subscribe("https://other.example/t")
    stage.stranger("a")
    world.run(3_000)
    stage.acknowledged(1, 1)
    stage.acknowledged(1, 1, "https://other.example/t")


@scenario(28, "a subscriber answers 500, then 200", "41")
def _second_time(stage: Stage) -> None:
    world = stage.set()
    subscription, _ = world.subscribe(DESMOS)
    world.endpoints[DESMOS].answers = [500]
    event_id = stage.stranger("a")
    world.run(1_000)
    stage.that(event_id not in world.store.members(rows.notified(subscription)), "marked after a 500")
    world.run(5_000)
    stage.that(event_id in world.store.members(rows.notified(subscription)), "not marked after a 200")
    stage.acknowledged(1, 1)


@scenario(29, "a dead subscriber, a dead letter, a redrive", "41")
def _dead_letter(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    world.endpoints[DESMOS].status = None
    stage.stranger("a")
    world.run(5 * 3_600_000)
    got = world.endpoints[DESMOS].got
    stage.that(len(got) == 12, f"{len(got)} POSTs")
    letters = world.dead_letters()
    stage.that(len(letters) == 1, f"{len(letters)} dead letters")
    world.endpoints[DESMOS].status = 200
    for letter in letters:
        stage.that(not world.redrive(letter), "not taken")
    world.run(1_000)
    stage.acknowledged(1, 1)


@scenario(30, "killed after the POST", "41")
def _killed_after_post(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.stranger("a")
    world.run_until(lambda: bool(world.endpoints[DESMOS].got), 5_000)
    world.kill(world.processes[0])
    world.run(60_000)
    got = world.endpoints[DESMOS].got
    stage.that(len(got) == 2, f"{len(got)} POSTs")
    stage.that(len({webhook for webhook, _, _ in got}) == 1, "several webhook ids")


@scenario(31, "a restart keeps subscriptions and sets", "3")
def _restart(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    world.run(3_000)
    sets = [world.store.members(rows.published(name)) for name in world.networks]
    world.kill(world.processes[0])
    world.run(10_000)
    stage.that(sets == [world.store.members(rows.published(name)) for name in world.networks], "the sets changed")
    stage.calls(2)
    stage.stranger("a", 2)
    world.run(3_000)
    stage.acknowledged(1, 1)
    stage.acknowledged(2, 1)


@scenario(32, "a subscription to every type of one environment", "40")
def _environment(stage: Stage) -> None:
    world = stage.set()
    world.subscribe(DESMOS, ("*",), ("prd",))
    for number, environment in enumerate(("sbx", "dev", "prd", "lcl"), 1):
        stage.stranger("a", number, number, environment=environment)
    world.run(5_000)
    for number in (1, 2, 3, 4):
        stage.acknowledged(number, int(number == 3))


@scenario(33, "an equal subscription is made again", "10")
def _equal(stage: Stage) -> None:
    world = stage.set()
    first, fresh = world.subscribe(DESMOS, ("x", "y"), ("prd",))
    second, again = world.subscribe(DESMOS, ("y", "x"), ("prd",))
    stage.that((first, fresh, again) == (second, True, False), "two subscriptions")
    stage.that(len(world.store.rows(rows.SUBSCRIPTIONS)) == 1, "two rows")


@scenario(35, "a notification without the key", "13")
def _forged(stage: Stage) -> None:
    world = stage.set()
    world.networks["a"].append(stage.event(1)[1], world.now)
    code = world.deliver(
        f"{world.rules.public_url}/internal/eventNotification/a/{'0' * 32}", world.networks["a"].log[0]
    )
    stage.that(code == "unauthorized", f"answered {code!r}")
    stage.calls(0)
