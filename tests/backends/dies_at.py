"""Exits with status 1 at its N-th call (`dies_at N`), having said why on standard error."""

import sys

import toy

calls = 0
for request in toy.requests():
    calls += request["op"] == "call"
    if request["op"] == "call" and calls == int(sys.argv[1]):
        sys.exit(f"toy: call {calls} is one too many")
    toy.send(toy.reply_to(request))
