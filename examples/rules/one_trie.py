"""What does one child trie for all publishers cost, instead of one for each?"""

from pubsub_emulator import rule


@rule
def place(para):
    return b"pubsub", para.to_bytes(4, "little")
