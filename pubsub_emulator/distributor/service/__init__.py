"""The distributor as a service: the state machine over real stores, adapters and HTTP."""
