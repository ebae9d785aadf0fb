"""The profile `accounts`: what a chain gains that takes extrinsics from clients.

Pallets: `system_calls`, `timestamp`, `utility`, `transaction_payment`, `sudo`, `publisher`. Extrinsics: `extrinsic` is
their bytes, `validity` why one is refused, `apply` runs one in a block.
"""
