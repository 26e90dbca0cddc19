"""The good backend behind a terminal, whose name is given; it never sees an end.  Seed 13 makes it lose an answer.

It ignores empty lines, answers a line that it cannot read, and has written half a line before anybody asked.
"""

import json
import sys
import tty

import toy

with open(sys.argv[1], "r+b", buffering=0) as line:
    tty.setraw(line.fileno())
    line.write(b'login: {"id":1,"ok"')
    print("ready", flush=True)
    left = b""
    while True:
        try:
            left += line.read(4096)
        except OSError:  # the other side of the terminal is gone for good
            break
        *requests, left = left.split(b"\n")
        for text in requests:
            try:
                request = json.loads(text) if text else None
            except ValueError:
                reply = {"id": 0, "trouble": {"kind": "garbage", "whose": "glue", "message": "not JSON"}}
            else:
                if request is None or request.get("seed") == 13:
                    continue
                reply = toy.reply_to(request)
            line.write(json.dumps(reply).encode() + b"\n")
