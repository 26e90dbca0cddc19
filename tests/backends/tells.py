"""Reports a trouble of its own for each call, without being able to say of which request if so asked
(`tells [unread]`)."""

import sys

import toy

for request in toy.requests():
    if request["op"] == "call":
        trouble = {"kind": "crash", "whose": "backend", "message": "kernel panic", "evidence": "Oops: 0000"}
        toy.send({"id": 0 if "unread" in sys.argv else request["id"], "trouble": trouble})
    else:
        toy.send(toy.reply_to(request))
