"""The good backend behind a socket: one connection after the other; `reset` of seed 13 breaks the connection.

listens.py unix PATH | tcp PORT-FILE
"""

import json
import socket
import struct
import sys
from pathlib import Path

import toy

kind, place = sys.argv[1:]
if kind == "unix":
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
else:
    server = socket.create_server(("127.0.0.1", 0))
    Path(place).write_text(str(server.getsockname()[1]), encoding="ascii")
server.listen()
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as lines:
        for line in lines:
            request = json.loads(line)
            if request.get("seed") == 13:
                abort = struct.pack("ii", 1, 0)  # a close that resets the connection
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort)
                break
            connection.sendall(json.dumps(toy.reply_to(request)).encode() + b"\n")
            if request["op"] == "close":
                break
