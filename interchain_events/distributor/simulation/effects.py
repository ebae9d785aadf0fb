"""The execution of the effects of a distributor's processes in a story, with faults."""

from abc import ABC, abstractmethod

from interchain_events.distributor.core import messages
from interchain_events.distributor.event import Event
from interchain_events.distributor.simulation.network import SimulatedNetwork
from interchain_events.distributor.simulation.scenery import Process, Scenery


def _probed(network: SimulatedNetwork, probe: messages.ProbeNetwork) -> messages.Probed:
    """Return the result of a probe of a network that answers."""
    if not network.legacy:
        there = network.has(probe.id)
        return messages.Probed(probe.network, probe.id, there, asked_at=probe.asked_at)
    shown = network.newest_of_seconds(probe.since)
    there = any(notice.id == probe.id for notice in shown)
    hiding = (
        notice.event.order == probe.entity and probe.time in {0, notice.time} for notice in shown
    )
    return messages.Probed(
        probe.network,
        probe.id,
        there,
        asked_at=probe.asked_at,
        hidden=not there and any(hiding),
        last=max((notice.time for notice in shown), default=0),
    )


class EffectRunner(Scenery, ABC):
    """The part of a world that carries out effects: calls, probes, reads and notifications."""

    @abstractmethod
    def tell(
        self, process: Process | None, *inputs: messages.Input
    ) -> list[messages.Effects] | None:
        """Apply inputs in a process, in one transaction.

        Returns their effects, or `None` if the process or the store is down.
        """

    @abstractmethod
    def kill(self, process: Process, *, back: bool = True) -> None:
        """Kill a process. Its effects that have not begun are lost."""

    @abstractmethod
    def publish_on(self, name: str, event: Event, *, by: Scenery | None = None) -> None:
        """Append an event to a network's log, and notify its subscriptions.

        `by` is the distributor that publishes, `None` for a stranger.
        """

    def perform(self, process: Process, run: int, effect: messages.Effect) -> None:
        """Carry out an effect if the process that emitted it is still running.

        The process is killed instead by chance, or if this is the effect number `kill_at`.
        """
        if not process.alive or process.run != run:
            return
        self.performed += 1
        if self.performed - 1 == self.kill_at or self.chance(self.faults.killed):
            self.kill(process)
            return
        match effect:
            case messages.CallNetwork():
                self._call(process, run, effect)
            case messages.Post():
                self._post(process, run, effect)
            case (
                messages.ProbeNetwork()
                | messages.ReadLog()
                | messages.ListHooks()
                | messages.MakeHook()
            ):
                self._answer(process, run, self._result_of(effect))
            case messages.DropHook():
                network = self.networks[effect.network]
                if network.up:
                    network.hooks.pop(effect.subscription, None)

    def _answer(
        self, process: Process, run: int, message: messages.Input, delay: int | None = None
    ) -> None:
        """Deliver a result to the process that emitted the effect, if it is still running.

        `delay` is in ms. If it is `None`, it is a random latency.
        """

        def arrive() -> None:
            if process.run != run or self.tell(process, message) is None:
                return
            if isinstance(message, messages.Answered) and not isinstance(
                message.answer, messages.Unknown
            ):
                self.timely[message.network, message.id] += 1
            if (
                isinstance(message, messages.Posted)
                and message.status is not None
                and process.alive
            ):
                self.answered_posts[message.subscription, message.id] += 1

        self.later(self.latency() if delay is None else delay, arrive)

    def _call(self, process: Process, run: int, effect: messages.CallNetwork) -> None:
        """Publish on a network, if the network and the faults allow it."""

        def answer(reply: messages.Answer, delay: int) -> None:
            # At its timeout, the caller stops waiting.
            if delay > self.rules.call_timeout:
                reply = messages.Unknown("timeout")
                delay = self.rules.call_timeout
            message = messages.Answered(effect.network, effect.id, reply)
            self._answer(process, run, message, delay=delay)

        network = self.networks[effect.network]
        if self.now > effect.before:
            answer(messages.Unknown("not begun"), 0)
            return
        self.calls[effect.network, effect.id] += 1
        self.record("call", effect.network, effect.id)
        if not network.up or self.chance(self.faults.call_fails):
            self.happened["calls that reached nobody"] += 1
            answer(messages.Unknown("unreachable"), 5)
            return
        if network.refuses:
            self.refused.add((effect.network, effect.id))
            answer(messages.No(network.refuses), 5)
            return
        delay = network.delay + self.latency()
        if network.lies or self.chance(self.faults.lie):
            self.lied.add((effect.network, effect.id))
            self.lie_seconds[effect.network, effect.id] = self.now // 1000
            self.happened["untrue acceptances"] += 1
            self.record("lie", effect.network, effect.id)
            answer(messages.Yes(self.now // 1000), delay)
            return
        # The event is published even if the caller has stopped waiting. The caller cannot know.
        self.later(delay, lambda: self.publish_on(effect.network, effect.event, by=self))
        is_silent = network.mute or self.chance(self.faults.answer_lost)
        self.happened["publications without an answer"] += is_silent
        reply = messages.Yes((self.now + delay) // 1000)
        if is_silent:
            answer(reply, self.rules.call_timeout + 1)
        else:
            answer(reply, delay + self.latency())

    def _result_of(
        self,
        effect: messages.ProbeNetwork | messages.ReadLog | messages.ListHooks | messages.MakeHook,
    ) -> messages.Input:
        """Return the result of a probe, of a read, or of a request about subscriptions."""
        network = self.networks[effect.network]
        fault_rate = self.faults.read_fails
        if isinstance(effect, messages.MakeHook):
            fault_rate = self.faults.call_fails
        answers = network.up and not self.chance(fault_rate)
        match effect:
            case messages.ProbeNetwork():
                self.record("probe", effect.network, effect.id)
                if not answers:
                    return messages.Probed(
                        effect.network, effect.id, None, asked_at=effect.asked_at
                    )
                return _probed(network, effect)
            case messages.ReadLog():
                page = network.page(effect.after, effect.limit, effect.since) if answers else None
                return messages.Paged(effect.network, effect.after, page)
            case messages.ListHooks():
                hooks = tuple(
                    messages.Hook(name, endpoint) for name, endpoint in network.hooks.items()
                )
                return messages.Listed(effect.network, hooks if answers else None)
            case messages.MakeHook():
                accepted = network.hook(effect.endpoint, effect.form) if answers else None
                lost = answers and self.chance(self.faults.answer_lost)
                return messages.Hooked(effect.network, effect.form, None if lost else accepted)

    def _post(self, process: Process, run: int, effect: messages.Post) -> None:
        """Notify a subscriber, if the subscriber and the faults allow it."""
        posted = messages.Posted(effect.subscription, effect.id, None)
        if self.now > effect.before:
            self._answer(process, run, posted, delay=0)
            return
        self.posts[effect.subscription, effect.id] += 1
        if self.chance(self.faults.post_fails):
            self.happened["notifications of subscribers failed"] += 1
            self._answer(process, run, posted, delay=5)
            return
        status = self.endpoints[effect.endpoint].post(effect.webhook, effect.id)
        self.record("post", effect.webhook, effect.id, status)
        is_lost = status is None or self.chance(self.faults.answer_lost)
        delay = self.rules.post_timeout if is_lost else self.latency()
        if delay > self.rules.post_timeout:
            is_lost = True
            delay = self.rules.post_timeout
        if not is_lost:
            posted = posted._replace(status=status)
        self._answer(process, run, posted, delay=delay)
