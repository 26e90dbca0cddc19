"""Never answers a call."""

import signal

import toy

for request in toy.requests():
    if request["op"] == "call":
        signal.pause()
    toy.send(toy.reply_to(request))
