"""Old import paths work for one release and warn."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

from pubsub_emulator.moved import DISTRIBUTIONS, MOVED, new_path

ELSEWHERE = {old: new for old, new in MOVED.items() if new.partition(".")[0] in DISTRIBUTIONS}
"""The modules that moved to another distribution."""

ALONE = """
import json, sys, warnings
from importlib import import_module
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "interchain_events":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import pubsub_emulator
sys.meta_path.insert(0, Missing())
warnings.simplefilter("ignore")
said = {}
for old in json.load(sys.stdin):
    try:
        import_module(old)
    except ModuleNotFoundError as error:
        said[old] = (str(error), error.name)
json.dump(said, sys.stdout)
"""
"""Imports old paths where the other distribution is missing, and prints the errors."""


@pytest.fixture(autouse=True)
def fresh_old_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if new_path(name) is not None]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(("old", "new"), MOVED.items(), ids=list(MOVED))
def test_an_old_path_is_the_module_of_the_new_one_and_warns(old: str, new: str) -> None:
    module = import_module(new)
    spec = module.__spec__
    with pytest.warns(DeprecationWarning, match=rf"{old} is now {new}") as caught:
        exec(compile(f"import {old}", "user.py", "exec"), {})  # noqa: S102  # the line of a user
    assert sys.modules[old] is module
    assert module.__spec__ is spec
    assert {warning.filename for warning in caught} == {"user.py"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pubsub_emulator.emulator.settings.fields", "pubsub_emulator.files.settings.fields"),
        ("pubsub_emulator.prism.core.wire", "interchain_events.prism.core.wire"),
    ],
)
def test_modules_within_a_moved_package_are_the_same_objects(old: str, new: str) -> None:
    module = import_module(new)
    with pytest.warns(DeprecationWarning, match="is now"):
        assert import_module(old) is module


PAGES = "pubsub_emulator.cli.screen.pages"


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [
        ("pubsub_emulator.cli.base.extras", "is_url", "pubsub_emulator.client.places"),
        ("pubsub_emulator.cli.base.figures", "lines_of", "pubsub_emulator.runs.figures"),
        ("pubsub_emulator.cli.base.figures", "of_run", "pubsub_emulator.runs.figures"),
        ("pubsub_emulator.cli.commands.tour.run", "must", "pubsub_emulator.laboratory.tour"),
        (PAGES, "Doing", "pubsub_emulator.files.pages"),
        (PAGES, "Grid", "pubsub_emulator.files.pages"),
        (PAGES, "Line", "pubsub_emulator.files.pages"),
        (PAGES, "Shown", "pubsub_emulator.files.pages"),
        (PAGES, "made_safe", "pubsub_emulator.files.pages"),
        (PAGES, "PREVIEW", "pubsub_emulator.runtime.framework.words"),
        (PAGES, "printable", "pubsub_emulator.runtime.framework.words"),
        (PAGES, "words", "pubsub_emulator.runtime.framework.words"),
    ],
)
def test_an_old_place_of_a_single_name_warns(module: str, name: str, home: str) -> None:
    old = import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{name} is now {home}.{name};"):
        assert getattr(old, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("module", ["pubsub_emulator.cli.base.extras", PAGES])
def test_a_name_that_such_a_module_never_had_is_missing(module: str) -> None:
    old = import_module(module)
    with pytest.raises(AttributeError, match="has no attribute 'Table'"):
        _ = old.Table


def test_the_packages_that_became_a_distribution_are_found_by_their_old_paths() -> None:
    packages = {"database", "distributor", "events", "icrc72", "prism"}
    assert {f"pubsub_emulator.{name}" for name in packages} <= ELSEWHERE.keys()


def test_without_the_other_distribution_an_old_path_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=json.dumps(list(ELSEWHERE)),
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    assert said.keys() == ELSEWHERE.keys()
    for old, (message, name) in said.items():
        assert message == (
            f"{old} is now {ELSEWHERE[old]}, and the distribution interchain-events, which has it,"
            " is not installed: `pip install interchain-events`"
        )
        assert name == "interchain_events"


def test_another_module_that_is_missing_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOVED, "pubsub_emulator.once", "pubsub_emulator.nowhere")
    with (
        pytest.warns(DeprecationWarning, match="once"),
        pytest.raises(ModuleNotFoundError, match=r"No module named 'pubsub_emulator\.nowhere'"),
    ):
        import_module("pubsub_emulator.once")


def test_a_path_that_never_existed_is_no_module() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("pubsub_emulator.collator.drawings")
