"""The orchestrator: registrations, assignment of broadcasters, system events and replays."""
