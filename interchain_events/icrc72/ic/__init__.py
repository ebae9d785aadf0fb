"""A small emulated Internet Computer: subnets and canisters that are stepped in rounds."""
