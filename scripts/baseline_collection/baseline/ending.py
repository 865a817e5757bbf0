"""How a run is ended from outside."""

import signal


def end_as_by_ctrl_c() -> None:
    """Take SIGTERM, and the SIGHUP of a terminal that is closed, as Ctrl-C: a run writes what there is, and leaves no
    daemon of its own behind. Under ``nohup`` it goes on."""
    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    for end in ends:
        signal.signal(end, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs behind without it
