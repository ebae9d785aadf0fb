"""ICRC-72 publish-subscribe and ICRC-77 replay: orchestrator, broadcaster, publisher, subscriber."""
