"""A chain's types for clients: metadata, and values by the same descriptions that metadata is made of."""
