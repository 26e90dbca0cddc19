"""Closes its standard output at its first call and stays."""

import os
import signal

import toy

for request in toy.requests():
    if request["op"] == "call":
        os.close(1)
        signal.pause()
    toy.send(toy.reply_to(request))
