"""A STAND-IN for docker, since the tests have none: it writes down its arguments, and starts the program itself.

It isolates nothing. The tests that use it show which options docker gets, and what the daemon does around it, but not
that a container is isolated.
"""

import json
import os
import sys
from pathlib import Path

IMAGE = "example/server:1"


def main() -> None:
    """``run OPTIONS IMAGE COMMAND...`` or ``rm --force NAME``."""
    arguments = sys.argv[1:]
    record = {"arguments": arguments, "secret": os.environ.get("API_KEY"), "other": os.environ.get("GLM_API_KEY")}
    with Path(os.environ["STAND_IN_LOG"]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(record) + "\n")
    if arguments[0] == "run":
        command = arguments[arguments.index(IMAGE) + 1 :]
        os.execv(command[0], command)  # noqa: S606 - what a container would run


if __name__ == "__main__":
    main()
