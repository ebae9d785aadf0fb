"""The distributor as a process: its engine, its HTTP interface, and its clients of adapters."""
