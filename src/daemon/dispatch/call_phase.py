"""The phases of a call, the legal transitions between them, and the reasons for ending a call early. Pure."""

from enum import Enum, IntEnum
from typing import Final, Literal


class CallPhase(IntEnum):
    """The phase of a call. Only ``RunningCall.advance`` changes it."""

    ACCEPTED = 0
    """Its task has not run yet."""
    QUEUED = 1
    """It waits for its rate limit, its permits or the journal."""
    RUNNING = 2
    """Its tool has started."""
    CANCELLED = 3
    """It must end, and its tool has not started."""
    ENDING = 4
    """It must end, and its tool has started."""
    ANSWERED = 5
    """Its answer is decided; a second answer is dropped."""


SUCCESSORS: Final[tuple[tuple[CallPhase, ...], ...]] = (
    (CallPhase.QUEUED, CallPhase.CANCELLED, CallPhase.ANSWERED),  # after ACCEPTED
    (CallPhase.RUNNING, CallPhase.CANCELLED, CallPhase.ANSWERED),  # after QUEUED
    (CallPhase.ENDING, CallPhase.ANSWERED),  # after RUNNING
    (CallPhase.ANSWERED,),  # after CANCELLED
    (CallPhase.ANSWERED,),  # after ENDING
    (),  # after ANSWERED
)
"""The legal transitions, indexed by the current phase."""

PublicState = Literal["waiting", "running", "ending"]

PUBLIC_STATES: Final[tuple[PublicState, ...]] = ("waiting", "waiting", "running", "ending", "ending", "ending")
"""The state that clients and operators see in each phase."""


class IllegalTransitionError(RuntimeError):
    """A call cannot go from its phase to the requested one."""

    def __init__(self, before: CallPhase, after: CallPhase) -> None:
        super().__init__(f"a call cannot go from {before.name} to {after.name}")


class JournalRecord(Enum):
    """The journal's record under a call's id."""

    NONE = "none"
    """Nothing: the call is local, or it has not started."""
    EARLIER_RUN = "earlier run"
    """The same child call in an earlier run of its parent; starting the call again replaces that record."""
    OWN = "own"
    """The call itself, unless the write of its start failed. Its end is written to the journal before its answer is
    sent."""
    PREVIOUS_CALL = "previous call"
    """An earlier call with the same request id, which its session no longer has in memory; the new call does not
    run."""


class EndReason(Enum):
    """Why a call ends before its tool returns."""

    CALLER = "caller"
    OPERATOR = "operator"
    DEADLINE = "deadline"
    DISCONNECT = "disconnect"
    SHUTDOWN = "shutdown"
    PARENT = "parent"
