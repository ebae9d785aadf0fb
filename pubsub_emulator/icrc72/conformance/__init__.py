"""Conformance: one role is somebody else's, the emulator plays every other, and each rule is judged by the trace."""
