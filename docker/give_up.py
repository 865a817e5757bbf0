"""Ends supervisor, and with it the container, where a program could not be started however often it was tried.

A supervisor event listener: it reads events from standard input and says READY and RESULT on standard output.
"""

import os
import signal
import sys


def main() -> None:
    """Wait for the first event, which is the end."""
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    header = dict(word.split(":", 1) for word in sys.stdin.readline().split())
    if not header:
        return  # supervisor has ended
    payload = sys.stdin.read(int(header["len"]))
    event = dict(word.split(":", 1) for word in payload.split())
    sys.stderr.write(f"container: {event['processname']} cannot be started; ending. What it said stands above.\n")
    sys.stderr.flush()
    os.kill(os.getppid(), signal.SIGTERM)
    sys.stdout.write("RESULT 2\nOK")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
