"""Runs a scenario and makes its page. Equal scenarios give equal pages."""

from collections.abc import Callable

from pubsub_emulator.emulator.scenario import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.explorer.page import page_html
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.words import scenario_names


def record(simulation: Simulation) -> Recorder:
    """A recorder of everything that the simulation's network does from now on."""
    recorder = Recorder(scenario_names(simulation.scenario), simulation.network.relay)
    simulation.network.observe(recorder)
    return recorder


def page_of(recorder: Recorder, scenario: Scenario) -> str:
    """The page of a recorder."""
    return page_html(recorder, scenario.name, scenario.description)


def explore(scenario: Scenario, progress: Callable[[int], None] | None = None) -> str:
    """Run a scenario and make its page."""
    simulation = Simulation(scenario)
    recorder = record(simulation)
    simulation.run(progress)
    return page_of(recorder, scenario)
