"""The commands, one a module: arguments, options and help of `pubsub NAME` as `command`; the work is done beside it.

Modules here load nothing but click; a command imports what it needs when it runs.
"""
