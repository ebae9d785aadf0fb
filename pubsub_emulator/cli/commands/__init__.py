"""A file or folder per command: `pubsub some-name` is `commands/some_name`.

Its file, or the `__init__.py` of its folder, has arguments, options and help, and imports only
click, so that help is fast. `run.py` and what is beside it do the work; the command imports them
when it runs.
"""
