"""Canisters that somebody else wrote: WebAssembly modules on the emulated Internet Computer."""
