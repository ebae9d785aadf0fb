"""The commands, one per module: arguments, options and help of `pubsub NAME`. `cli/NAME.py` does the work.

Modules here import only click, so that help is fast. A command imports what it needs when it runs.
"""
