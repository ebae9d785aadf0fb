"""The HTTP interface of the Internet Computer: a server for agents (`pubsub icrc72 serve`).

It also has an agent, which calls canisters of any replica.
"""
