"""A supervisor event listener that ends supervisor, and so the container, when a program repeatedly fails to start.

It reads events from standard input and writes READY and RESULT to standard output.
"""

import os
import signal
import sys


def main() -> None:
    """Wait for the first event, then end supervisor."""
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    header = dict(word.split(":", 1) for word in sys.stdin.readline().split())
    if not header:
        return  # supervisor has ended
    payload = sys.stdin.read(int(header["len"]))
    event = dict(word.split(":", 1) for word in payload.split())
    sys.stderr.write(
        f"container: {event['processname']} failed to start; stopping the container. Its output is above.\n"
    )
    sys.stderr.flush()
    os.kill(os.getppid(), signal.SIGTERM)
    sys.stdout.write("RESULT 2\nOK")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
