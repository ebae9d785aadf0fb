"""The catalogue of all cheats that the audit must find."""

from typing import Final

from interchain_events.icrc72.cheats import broadcasters, callers, replays

CHEATS: Final = (*broadcasters.CHEATS, *callers.CHEATS, *replays.CHEATS)
