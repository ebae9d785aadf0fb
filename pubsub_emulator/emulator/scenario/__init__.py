"""Scenarios: publishers, subscribers and cheats; read from TOML and run as a simulation."""
