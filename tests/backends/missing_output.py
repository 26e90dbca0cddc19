"""Answers alloc_pd without local_dma_lkey."""

import toy

for request in toy.requests():
    reply = toy.reply_to(request)
    if request["op"] == "call":
        del reply["answer"]["out"]["local_dma_lkey"]
    toy.send(reply)
