"""`python -m pubsub_emulator` is the command `pubsub`."""

from pubsub_emulator.cli.main import main

main()
