"""Pushes two events before each answer to a call, and one before it ends in the second call."""

import sys

import toy

calls = 0
for request in toy.requests():
    if request["op"] == "call":
        calls += 1
        for number in (1, 2) if calls == 1 else (3,):
            toy.send({"id": 0, "event": {"name": "QP_FATAL", "data": {"number": number}}})
        if calls == 2:
            sys.exit(1)
    toy.send(toy.reply_to(request))
