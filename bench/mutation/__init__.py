"""Mutates the rules and asks the tests: `python -m bench.mutation`; docs/mutation.md says what comes of it."""
