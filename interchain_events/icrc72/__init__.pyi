# The names of the package: the only list of them, for type checkers, editors and `__init__.py`
# alike.

from .archive import Archive as Archive
from .archive import whole_log as whole_log
from .audit.core import Audit as Audit
from .cheats.catalogue import CHEATS as CHEATS
from .cheats.stage import run as run_cheat  # noqa: F401  # another name than in its module
from .client import FILTER as FILTER
from .client import REPLAY as REPLAY
from .client import App as App
from .client import plain as plain
from .deployment import deploy as deploy
from .ic.candid.did import parse_types as parse_types
from .ic.messaging import Schedule as Schedule
from .ic.network import CanisterNetwork as CanisterNetwork
from .ic.principal import ANONYMOUS as ANONYMOUS
from .ic.principal import Principal as Principal
from .ic.wasm.canister import WasmCanister as WasmCanister
from .role import RoleCanister as RoleCanister
from .services import Codec as Codec
