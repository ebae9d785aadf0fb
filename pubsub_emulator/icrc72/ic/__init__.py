"""A small Internet Computer: subnets and canisters stepped in rounds."""
