"""Puts a mutant into a running process: the functions that it changes get other code.

Only functions can be changed so. What a module or a class computes when it is imported has happened already.
"""

import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

_IS_FUNCTION = 0x0001
"""`CO_OPTIMIZED`: the code of a function, a lambda or a comprehension; that of modules and classes has it not."""

_Place = tuple[str, str, int]


class Unswappable(Exception):
    """This mutant must be imported."""


class Swapper:
    """The functions of some files that are alive now, and the means to change them. Paths as Python has them."""

    def __init__(self, paths: set[str]) -> None:
        self._alive: dict[_Place, list[FunctionType]] = {}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in paths:
                self._alive.setdefault(_place(thing.__code__), []).append(thing)

    def swap(self, before: CodeType, after: CodeType) -> None:
        """Change the functions of the module with the code `before` to those of `after`. Raises `Unswappable`."""
        changed = list(_changed(before, after))
        if not changed:
            raise Unswappable("no function changes")
        for old, new in changed:
            if any(_place(inner) in self._alive for inner in _inside(old)):
                raise Unswappable(f"a function made inside of {old.co_qualname} is alive")
            alive = self._alive.get(_place(old), ())
            if not alive or any(_shape(function.__code__) != _shape(old) for function in alive):
                raise Unswappable(f"{old.co_qualname} is not found as it is in the file")
            for function in alive:
                try:
                    function.__code__ = new
                except ValueError as error:  # it closes over other names
                    raise Unswappable(str(error)) from error


def _place(code: CodeType) -> _Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The outermost functions whose code differs."""
    if _shape(old) == _shape(new):
        return
    if old.co_flags & _IS_FUNCTION:
        yield old, new
        return
    if _shape(old, deep=False) != _shape(new, deep=False):
        raise Unswappable(f"{old.co_qualname} itself changes")
    for before, after in zip(old.co_consts, new.co_consts, strict=True):
        if isinstance(before, CodeType):
            yield from _changed(before, after)


def _shape(code: CodeType, *, deep: bool = True) -> tuple[object, ...]:
    """What a code object does, without its position; not `deep`, without the code objects inside."""
    constants = tuple(
        (_shape(constant) if deep else None) if isinstance(constant, CodeType) else (type(constant), repr(constant))
        for constant in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    return code.co_code, constants, names, arguments, code.co_flags, code.co_exceptiontable
