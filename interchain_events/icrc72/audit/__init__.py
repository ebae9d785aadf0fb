"""The audit, which finds cheats in a trace, with the publishers' logs and the subscriptions."""
