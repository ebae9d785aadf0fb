"""What do the length of a value and the fixed width of its lifetime cost in each entry?"""

from pubsub_emulator import rule


def short(number):
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


@rule
def encode(value, ttl, inserted):
    first, last = short(inserted), short(ttl)
    return bytes((len(first) << 4 | len(last),)) + first + last + value


@rule
def decode(data):
    middle = 1 + (data[0] >> 4)
    end = middle + (data[0] & 15)
    return (
        data[end:],
        int.from_bytes(data[middle:end], "little"),
        int.from_bytes(data[1:middle], "little"),
    )
