"""Can everybody publish if the deposit of a public parachain is ten times as high?"""

from pubsub_emulator import rule


@rule
def may_publish(para, registered, system):
    return True


@rule
def deposit(para, amount):
    return amount if para < 2000 else 10 * amount
