"""Scenarios of subscribers: notifications, dead letters, interests and keys."""

from interchain_events.distributor.core import rows
from interchain_events.distributor.simulation.stage import DESMOS, ScenarioStage, scenario


@scenario(26, "both networks notify, the subscriber gets one POST", "41")
def _one_post(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    stage.world.run(60_000)
    stage.check(
        len(stage.world.endpoints[DESMOS].got) == 1,
        f"{len(stage.world.endpoints[DESMOS].got)} POSTs",
    )


@scenario(27, "two subscriptions match", "41")
def _two(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS)
    stage.world.subscribe("https://other.example/t")
    stage.stranger("a")
    stage.acknowledged(1, 1, after=3_000)
    stage.acknowledged(1, 1, "https://other.example/t")


@scenario(28, "a subscriber answers 500, then 200", "41")
def _second_time(stage: ScenarioStage) -> None:
    subscription, _ = stage.world.subscribe(DESMOS)
    stage.world.endpoints[DESMOS].answers = [500]
    event_id = stage.stranger("a")
    stage.world.run(1_000)
    stage.check(
        event_id not in stage.world.store.members(rows.notified(subscription)), "marked after a 500"
    )
    stage.world.run(5_000)
    stage.check(
        event_id in stage.world.store.members(rows.notified(subscription)), "not marked after a 200"
    )
    stage.acknowledged(1, 1)


@scenario(29, "a dead subscriber, a dead letter, a redrive", "41")
def _dead_letter(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS)
    stage.world.endpoints[DESMOS].status = None
    stage.stranger("a")
    stage.world.run(5 * 3_600_000)
    got = stage.world.endpoints[DESMOS].got
    stage.check(len(got) == 12, f"{len(got)} POSTs")
    letters = stage.world.dead_letters()
    stage.check(len(letters) == 1, f"{len(letters)} dead letters")
    stage.world.endpoints[DESMOS].status = 200
    for letter in letters:
        stage.check(not stage.world.redrive(letter), "not taken")
    stage.acknowledged(1, 1, after=1_000)


@scenario(30, "killed after the POST", "41")
def _killed_after_post(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS)
    stage.stranger("a")
    stage.world.run_until(lambda: bool(stage.world.endpoints[DESMOS].got), 5_000)
    stage.world.kill(stage.world.processes[0])
    stage.world.run(60_000)
    got = stage.world.endpoints[DESMOS].got
    stage.check(len(got) == 2, f"{len(got)} POSTs")
    stage.check(len({webhook for webhook, _, _ in got}) == 1, "several webhook ids")


@scenario(31, "a restart keeps subscriptions and sets", "3")
def _restart(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS)
    stage.status(stage.publish(), 201)
    stage.world.run(3_000)
    before = [stage.world.store.members(rows.published(name)) for name in stage.world.networks]
    stage.world.kill(stage.world.processes[0])
    stage.world.run(10_000)
    sets = [stage.world.store.members(rows.published(name)) for name in stage.world.networks]
    stage.check(sets == before, "the sets changed")
    stage.calls(2)
    stage.stranger("a", 2)
    stage.acknowledged(1, 1, after=3_000)
    stage.acknowledged(2, 1)


@scenario(32, "a subscription to every type of one environment", "40")
def _environment(stage: ScenarioStage) -> None:
    stage.world.subscribe(DESMOS, ("*",), ("prd",))
    for number, environment in enumerate(("sbx", "dev", "prd", "lcl"), 1):
        stage.stranger("a", number, number, environment=environment)
    stage.world.run(5_000)
    for number in (1, 2, 3, 4):
        stage.acknowledged(number, int(number == 3))


@scenario(33, "an equal subscription is made again", "10")
def _equal(stage: ScenarioStage) -> None:
    first, fresh = stage.world.subscribe(DESMOS, ("x", "y"), ("prd",))
    second, again = stage.world.subscribe(DESMOS, ("y", "x"), ("prd",))
    stage.check((first, fresh, again) == (second, True, False), "two subscriptions")
    stage.check(len(stage.world.store.rows(rows.SUBSCRIPTIONS)) == 1, "two rows")


@scenario(35, "a notification without the key", "13")
def _forged(stage: ScenarioStage) -> None:
    stage.world.networks["a"].append(stage.event(1)[1], stage.world.now)
    endpoint = f"{stage.world.rules.public_url}/internal/eventNotification/a/{'0' * 32}"
    code = stage.world.deliver(endpoint, stage.world.networks["a"].log[0])
    stage.check(code == "unauthorized", f"answered {code!r}")
    stage.calls(0)
