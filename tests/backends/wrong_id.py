"""Answers a call with the id of another request (`wrong_id OFFSET`)."""

import sys

import toy

for request in toy.requests():
    offset = int(sys.argv[1]) if request["op"] == "call" else 0
    toy.send(toy.reply_to(request) | {"id": request["id"] + offset})
