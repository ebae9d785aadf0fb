"""What every test shares: hypothesis budgets by name, and one worker for all that starts Spark."""

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings

# `ci` is the same on every run, `dev` looks for something new, `long` is for a night. Chosen by HYPOTHESIS_PROFILE.
_SLOW_MACHINES = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci", derandomize=True, max_examples=50, deadline=None, database=None, suppress_health_check=_SLOW_MACHINES
)
settings.register_profile("dev", max_examples=50, deadline=timedelta(seconds=5))
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=_SLOW_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One Spark session a machine is enough: its tests go to one worker of pytest-xdist."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
