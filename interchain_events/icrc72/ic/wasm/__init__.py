"""Canisters as WebAssembly modules, in any language, on the emulated Internet Computer."""
