"""Answers calls with something that is not JSON."""

import toy

for request in toy.requests():
    if request["op"] == "call":
        print("%PDF-1.7", flush=True)
    else:
        toy.send(toy.reply_to(request))
