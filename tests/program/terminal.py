# SPDX-License-Identifier: MIT
"""Runs a command on a pseudo-terminal of so many columns and prints what it wrote there, as it wrote it.

    terminal.py COLUMNS COMMAND...

The exit status is that of the command. terminal.sh looks at the lines."""
import fcntl
import os
import pty
import struct
import sys
import termios

columns, command = int(sys.argv[1]), sys.argv[2:]
pid, screen = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execvp(command[0], command)
while True:
    try:
        got = os.read(screen, 65536)
    except OSError:  # Linux says so when the other end is closed
        break
    if not got:
        break
    os.write(1, got)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
