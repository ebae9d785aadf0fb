# The names of the package: the only list of them, for type checkers, editors and `__init__.py`
# alike.

from .core.filters import Filter as Filter
from .core.filters import FilterType as FilterType
from .core.identifiers import credential_hash as credential_hash
from .core.identifiers import is_in_batch as is_in_batch
from .core.identifiers import merkle_tree as merkle_tree
from .core.messages import AddService as AddService
from .core.messages import RemoveService as RemoveService
from .core.messages import Service as Service
from .core.messages import Usage as Usage
from .core.process import Status as Status
from .local import LocalPrism as LocalPrism
from .make import Secret as Secret
from .make import create_did as create_did
from .make import create_storage_entry as create_storage_entry
from .make import deactivate_storage_entry as deactivate_storage_entry
from .make import issue_batch as issue_batch
from .make import revoke as revoke
from .make import update_did as update_did
from .make import update_storage_entry as update_storage_entry
