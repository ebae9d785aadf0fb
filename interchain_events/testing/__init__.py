"""Tools to test canisters with the emulator: a pytest plugin.

plugin.py      the plugin that pytest loads: the fixture `pubsub_canisters`
canisters.py   a network of subnets for it
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)
