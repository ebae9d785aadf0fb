"""The event plane: events of chains, delivered in order, without gaps, once to each subscriber that they concern."""
