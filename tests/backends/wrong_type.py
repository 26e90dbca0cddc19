"""Answers alloc_pd with a handle that is text."""

import toy

for request in toy.requests():
    reply = toy.reply_to(request)
    if request["op"] == "call":
        reply["answer"]["out"]["pd"] = "0x1"
    toy.send(reply)
