"""Answers calls after SECONDS (`late SECONDS`)."""

import sys
import time

import toy

for request in toy.requests():
    if request["op"] == "call":
        time.sleep(float(sys.argv[1]))
    toy.send(toy.reply_to(request))
