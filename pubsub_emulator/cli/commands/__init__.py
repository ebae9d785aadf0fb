"""A folder per command: `pubsub some-name` is `commands/some_name/`.

`command.py` has arguments, options and help, and imports only click, so that help is fast. `run.py` and what is beside
it do the work; the command imports them when it runs.
"""
