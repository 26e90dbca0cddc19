"""Speaks version 2 of WHAT (`wrong_version protocol|contract`)."""

import sys

import toy

for request in toy.requests():
    reply = toy.reply_to(request)
    if request["op"] == "hello":
        (reply if sys.argv[1] == "protocol" else reply["hello"])[sys.argv[1]] = "2.0"
    toy.send(reply)
