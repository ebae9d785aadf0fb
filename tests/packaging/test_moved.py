"""Old import paths work for one release and warn."""

import sys
from importlib import import_module

import pytest

from pubsub_emulator.moved import MOVED, new_path


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


def test_modules_within_a_moved_package_are_the_same_objects() -> None:
    new = import_module("pubsub_emulator.files.settings.fields")
    with pytest.warns(DeprecationWarning, match="settings"):
        assert import_module("pubsub_emulator.emulator.settings.fields") is new


def test_a_path_that_never_existed_is_no_module() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("pubsub_emulator.collator.drawings")
