"""How signals end a run."""

import signal


def end_as_by_ctrl_c() -> None:
    """Treat SIGTERM, and the SIGHUP of a closed terminal, as Ctrl-C: a run writes its record and leaves no daemon that
    it started. Under ``nohup`` SIGHUP is ignored.
    """
    ends = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    for end in ends:
        signal.signal(end, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background processes with SIGINT ignored
