"""Does not read what it is asked after the reset."""

import signal

import toy

for request in toy.requests():
    toy.send(toy.reply_to(request))
    if request["op"] == "reset":
        signal.pause()
