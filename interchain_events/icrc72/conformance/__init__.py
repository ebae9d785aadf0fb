"""The conformance kit, which tests an implementation of one role against the rules.

In a trial, the candidate plays one role in an emulated network, and the emulator plays all others.
The verdicts come from the trace of messages. Canisters that run elsewhere are tested by calls only.
"""
