"""The profile `accounts`: pallets and checks of a chain that accepts signed extrinsics from clients.

Pallets: `system_calls`, `timestamp`, `utility`, `transaction_payment`, `sudo`, `publisher`. Extrinsics: `extrinsic`
decodes them, `validity` has the reasons for refusing one, `apply` runs one in a block.
"""
