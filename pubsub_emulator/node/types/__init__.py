"""Values of a chain's types as JSON, by the same descriptions that its metadata is made from."""
