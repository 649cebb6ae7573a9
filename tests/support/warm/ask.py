"""What Jupyter starts in place of a kernel: asks the server at a door for one, and is its stand-in while it lives."""

import json
import os
import signal
import socket
import sys

door, module, *arguments = sys.argv[1:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(door)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, _: server.send(bytes([number])) and None)
asked = {"module": module, "arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
code = int(server.recv(16) or 1)
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
sys.exit(code)
