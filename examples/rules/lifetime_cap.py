"""Does a cap on lifetimes free storage that publishers would otherwise hold for ever?"""

from pubsub_emulator import rule


@rule
def lifetime(ttl, para, size, now):
    return min(ttl or 10, 10)
