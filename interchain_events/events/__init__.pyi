# The names of the package: the only list of them, for type checkers, editors and `__init__.py`
# alike.

from .errors import CursorAbandoned as CursorAbandoned
from .filters.algebra import All as All
from .filters.algebra import Any as Any
from .filters.algebra import Chain as Chain
from .filters.algebra import Field as Field
from .filters.algebra import Kind as Kind
from .filters.algebra import Not as Not
from .filters.algebra import OneOf as OneOf
from .log.memory import MemoryStore as MemoryStore
from .log.sql_store import existing_store as existing_store
from .log.sql_store import open_store as open_store
from .subscriptions.registry import SqlRegistry as SqlRegistry
from .subscriptions.service import START as START
from .subscriptions.service import EventService as EventService
