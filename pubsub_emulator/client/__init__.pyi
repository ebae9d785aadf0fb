# The names of the package: the only list of them, for type checkers, editors and `__init__.py`
# alike.

from .extrinsics import development_seed as development_seed
from .extrinsics import signed_extrinsic as signed_extrinsic
from .fork import open_fork as open_fork
from .node import SubstrateNode as SubstrateNode
from .rpc import connect as connect
