"""Answers a call byte by byte, fast enough to look busy and never done."""

import sys
import time

import toy

for request in toy.requests():
    while request["op"] == "call":
        sys.stdout.write("x")
        sys.stdout.flush()
        time.sleep(0.001)
    toy.send(toy.reply_to(request))
