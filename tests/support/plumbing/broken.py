"""Functions of the project with a part of their source replaced, for the time of a test."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest


def breaks(patch: pytest.MonkeyPatch, function: Callable[..., Any], old: str, new: str) -> None:
    """Replace a part of a function's source, wherever the function is referred to already."""
    inner: Any = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(inner))
    assert source.count(old) == 1, f"{inner.__qualname__} has {source.count(old)} times {old!r}"
    tree = ast.parse(source.replace(old, new))
    assert isinstance(tree.body[0], ast.FunctionDef)
    tree.body[0].decorator_list = []
    made: dict[str, Any] = {}
    exec(compile(tree, inspect.getfile(inner), "exec"), dict(inner.__globals__), made)  # noqa: S102  # our own source
    patch.setattr(inner, "__code__", made[inner.__name__].__code__)
