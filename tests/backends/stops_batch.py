"""Ends a batch too early, or goes on too long (`stops_batch COUNT`)."""

import sys

import toy

for request in toy.requests():
    reply = toy.reply_to(request)
    if request["op"] == "batch":
        reply["batch"] = (reply["batch"] * 9)[: int(sys.argv[1])]
    toy.send(reply)
