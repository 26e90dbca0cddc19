"""Answers a call with a line that never ends."""

import sys

import toy

for request in toy.requests():
    while request["op"] == "call":
        sys.stdout.write("x" * 65536)
    toy.send(toy.reply_to(request))
