"""Values of a chain's types as JSON, by the type descriptions from which its metadata is made."""
