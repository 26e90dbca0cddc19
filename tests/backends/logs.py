"""Writes BYTES to standard error before each answer (`logs BYTES`), which is its right."""

import sys

import toy

for request in toy.requests():
    sys.stderr.write("x" * int(sys.argv[1]) + "\nlast words\n")
    sys.stderr.flush()
    toy.send(toy.reply_to(request))
