"""Calls canisters as each kind of user: `python agent.py URL CANISTERS`, the second as JSON; prints
JSON.
"""

import json
import sys

from icp_agent import Agent, Client
from icp_candid.candid import Types, encode
from icp_identity import Identity

url, who = sys.argv[1], json.loads(sys.argv[2])
told = []
for identity in (Identity(anonymous=True), Identity(type="ed25519"), Identity(type="secp256k1")):
    agent = Agent(identity, Client(url=url))
    argument = encode([{"type": Types.Nat, "value": 5}])
    # its check of certificates needs a library that no package index has; that of queries is its
    # own
    made = agent.update_raw(who["publisher"], "publish", argument, verify_certificate=False)
    read = agent.query_raw(who["subscriber"], "ids", encode([]), verify_query_signatures=True)
    told.append({"number": made[0]["value"], "ids": read[0]["value"]})
sys.stdout.write(json.dumps(told))
