"""A collator that has as many downward messages wait as the runtime allows."""

from dataclasses import replace

from pubsub_emulator import (
    Claim,
    Draws,
    HashedMessage,
    HashMessages,
    Proposal,
    Situation,
    message_hash,
    strategy,
)


@strategy("hold-back", "have the orders of the relay chain carried out late")
def hold_back(situation: Situation, _draws: Draws) -> Proposal:
    """Take the first downward message, which the basic rule wants, and hash all others."""
    messages = situation.messages
    held = [HashedMessage(each.sent_at, message_hash(each.msg)) for each in messages.downward[1:]]
    if not held:
        return None
    hashed = (*held, *messages.hashed_downward)
    fewer = replace(messages, downward=messages.downward[:1], hashed_downward=hashed)
    inherent = situation.inherent(situation.relay, situation.walked, fewer)
    after = situation.state_root_after(situation.walked, inherent=inherent)
    return (HashMessages(0, 1), Claim("state_root", after))
