# The names of the package: the only list of them, for type checkers, editors and `__init__.py`
# alike.

from .histories import play as play
