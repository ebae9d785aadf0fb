"""Carrying out effects in a story: calls, probes, reads and notifications, as well or badly as they go."""

from collections.abc import Callable

from pubsub_emulator.distributor.core import messages
from pubsub_emulator.distributor.event import Event
from pubsub_emulator.distributor.simulation.scenery import Process, Scenery


class Hands:
    """Effects of a world's processes outside of their store.

    `tell` has a process take an input in, and returns `None` where it cannot; `kill` ends a process; `deed` writes an
    event into a network's log.
    """

    def __init__(
        self,
        world: Scenery,
        tell: Callable[[Process, messages.Input], object],
        kill: Callable[[Process], None],
        deed: Callable[[str, Event], None],
    ) -> None:
        self._world = world
        self._tell = tell
        self._kill = kill
        self._deed = deed

    def perform(self, process: Process, run: int, effect: messages.Effect) -> None:
        """Carry an effect out, if the process that asked for it still runs; it may die of it."""
        if not process.alive or process.run != run:
            return
        self._world.performed += 1
        if self._world.performed - 1 == self._world.kill_at or self._world.chance(self._world.faults.killed):
            self._kill(process)
            return
        match effect:
            case messages.Call():
                self._call(process, run, effect)
            case messages.Probe():
                self._ask(process, run, effect)
            case messages.Post():
                self._post(process, run, effect)
            case messages.Read():
                self._read(process, run, effect)
            case messages.List():
                self._list(process, run, effect)
            case messages.MakeHook() | messages.MakeInterest():
                self._hook(process, run, effect)
            case messages.DropHook():
                network = self._world.networks[effect.network]
                if network.up:
                    network.hooks.pop(effect.subscription, None)

    def _answer(self, process: Process, run: int, message: messages.Input, delay: int | None = None) -> None:
        """An answer reaches the process that asked, if it still runs."""

        def arrive() -> None:
            if process.run == run and self._tell(process, message) is not None:
                self._count(message, process)

        self._world.later(self._world.latency() if delay is None else delay, arrive)

    def _count(self, message: messages.Input, process: Process) -> None:
        if isinstance(message, messages.Answered) and not isinstance(message.answer, messages.Unknown):
            self._world.timely[message.network, message.id] += 1
        if isinstance(message, messages.Posted) and message.status is not None and process.alive:
            self._world.answered_posts[message.subscription, message.id] += 1

    def _call(self, process: Process, run: int, effect: messages.Call) -> None:
        def answer(what: messages.Answer, delay: int) -> None:
            if delay > self._world.rules.call_timeout:
                what, delay = messages.Unknown("timeout"), self._world.rules.call_timeout
            self._answer(process, run, messages.Answered(effect.network, effect.id, what), delay)

        network = self._world.networks[effect.network]
        if self._world.now > effect.before:
            answer(messages.Unknown("not begun"), 0)
            return
        self._world.calls[effect.network, effect.id] += 1
        self._world.record("call", effect.network, effect.id)
        if not network.up or self._world.chance(self._world.faults.call_fails):
            self._world.happened["calls that reached nobody"] += 1
            answer(messages.Unknown("unreachable"), 5)
            return
        if network.refuses:
            answer(messages.No(network.refuses), 5)
            return
        delay = network.delay + self._world.latency()
        if network.lies or self._world.chance(self._world.faults.lie):
            self._world.lied.add((effect.network, effect.id))
            self._world.happened["yes without a deed"] += 1
            self._world.record("lie", effect.network, effect.id)
            answer(messages.Yes(self._world.now // 1000), delay)
            return
        self._world.later(delay, lambda: self._deed(effect.network, effect.event))
        silent = network.mute or self._world.chance(self._world.faults.answer_lost)
        self._world.happened["deeds without an answer"] += silent
        answer(
            messages.Yes((self._world.now + delay) // 1000),
            self._world.rules.call_timeout + 1 if silent else delay + self._world.latency(),
        )

    def _ask(self, process: Process, run: int, effect: messages.Probe) -> None:
        network = self._world.networks[effect.network]
        self._world.record("probe", effect.network, effect.id)
        there, hidden = None, False
        if network.up and not self._world.chance(self._world.faults.read_fails):
            shown = network.page(0, 0, effect.since)[0] if network.legacy else network.log
            there = any(notice.id == effect.id for notice in shown)
            hidden = network.legacy and not there and any(each.event.order == effect.entity for each in shown)
        self._answer(process, run, messages.Probed(effect.network, effect.id, there, effect.asked_at, hidden))

    def _read(self, process: Process, run: int, effect: messages.Read) -> None:
        network = self._world.networks[effect.network]
        if not network.up or self._world.chance(self._world.faults.read_fails):
            self._answer(process, run, messages.Paged(effect.network, effect.after, None))
            return
        notices, complete = network.page(effect.after, effect.limit, effect.since)
        self._answer(process, run, messages.Paged(effect.network, effect.after, notices, complete))

    def _list(self, process: Process, run: int, effect: messages.List) -> None:
        network = self._world.networks[effect.network]
        hooks = None
        if network.up and not self._world.chance(self._world.faults.read_fails):
            hooks = tuple(messages.Hook(name, endpoint) for name, endpoint in network.hooks.items())
        self._answer(process, run, messages.Listed(effect.network, hooks))

    def _hook(self, process: Process, run: int, effect: messages.MakeHook | messages.MakeInterest) -> None:
        network = self._world.networks[effect.network]
        if isinstance(effect, messages.MakeHook):
            form, url = effect.form, self._world.rules.hook_url(effect.network, effect.key)
        else:
            form = f"interest:{effect.subscription}"
            url = self._world.rules.interest_url(effect.network, effect.subscription, effect.key)
        accepted = None
        if network.up and not self._world.chance(self._world.faults.call_fails):
            accepted = network.hook(url, form)
            if self._world.chance(self._world.faults.answer_lost):
                accepted = None
        self._answer(process, run, messages.Hooked(effect.network, form, accepted))

    def _post(self, process: Process, run: int, effect: messages.Post) -> None:
        posted = messages.Posted(effect.subscription, effect.id, None)
        if self._world.now > effect.before:
            self._answer(process, run, posted, 0)
            return
        self._world.posts[effect.subscription, effect.id] += 1
        if self._world.chance(self._world.faults.post_fails):
            self._world.happened["notifications of subscribers failed"] += 1
            self._answer(process, run, posted, 5)
            return
        status = self._world.endpoints[effect.endpoint].post(effect.webhook, effect.id)
        self._world.record("post", effect.webhook, effect.id, status)
        lost = status is None or self._world.chance(self._world.faults.answer_lost)
        delay = self._world.rules.post_timeout if lost else self._world.latency()
        if delay > self._world.rules.post_timeout:
            lost, delay = True, self._world.rules.post_timeout
        self._answer(process, run, posted if lost else posted._replace(status=status), delay)
