"""The audit: what a trace, logs and subscriptions say about everybody."""
