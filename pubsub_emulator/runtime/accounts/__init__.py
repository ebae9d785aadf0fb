"""The profile `accounts`: a chain that accepts signed extrinsics from clients.

Its pallets are `system_calls`, `timestamp`, `utility`, `transaction_payment`, `sudo` and
`publisher`. `extrinsic` decodes extrinsics, and `apply` checks them and runs them in a block.
"""
