"""Kills itself with SIGKILL at its first call."""

import os
import signal

import toy

for request in toy.requests():
    if request["op"] == "call":
        os.kill(os.getpid(), signal.SIGKILL)
    toy.send(toy.reply_to(request))
