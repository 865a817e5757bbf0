"""The phases of a call: which transitions are legal, and what follows from any legal sequence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.call_phase import PUBLIC_STATES, SUCCESSORS, CallPhase, IllegalTransitionError
from toold.daemon.dispatch.running_call import RunningCall
from toold.daemon.dispatch.usage_meter import UsageMeter

PHASES = st.sampled_from(CallPhase)


def bare_call(phase: CallPhase) -> RunningCall:
    """A call of which only the phase matters."""
    nothing: Any = None
    return RunningCall(
        id="c",
        key="s1",
        session=nothing,
        request=nothing,
        tool=nothing,
        arguments={},
        port=nothing,
        permit=nothing,
        started=0.0,
        started_at=0.0,
        deadline=1.0,
        timeout_lowered=False,
        phase=phase,
        meter=UsageMeter(),
    )


@given(PHASES, PHASES)
def test_only_listed_transitions_are_accepted(before: CallPhase, after: CallPhase) -> None:
    """An illegal transition raises and leaves the phase as it was."""
    call = bare_call(before)
    if after in SUCCESSORS[before]:
        call.advance(after)
        assert call.phase is after
    else:
        with pytest.raises(IllegalTransitionError, match=f"from {before.name} to {after.name}"):
            call.advance(after)
        assert call.phase is before


@given(st.data())
def test_every_call_can_be_answered_once(data: st.DataObject) -> None:
    """Any legal sequence ends in ANSWERED, visits no phase twice, and can be answered at every step."""
    call = bare_call(CallPhase.ACCEPTED)
    visited = [call.phase]
    while SUCCESSORS[call.phase]:
        assert CallPhase.ANSWERED in SUCCESSORS[call.phase]
        call.advance(data.draw(st.sampled_from(SUCCESSORS[call.phase])))
        visited.append(call.phase)
    assert call.answered
    assert len(visited) == len(set(visited))


@given(st.data())
def test_a_cancelled_call_never_enters_its_tool(data: st.DataObject) -> None:
    """``executed: no`` is safe for a call that ends before its tool is entered."""
    call = bare_call(CallPhase.CANCELLED)
    while SUCCESSORS[call.phase]:
        call.advance(data.draw(st.sampled_from(SUCCESSORS[call.phase])))
        assert not call.entered


def test_every_phase_has_successors_and_a_public_state() -> None:
    """Both tables are indexed by the phase."""
    assert len(SUCCESSORS) == len(PUBLIC_STATES) == len(CallPhase)
    assert [bare_call(phase).public_state for phase in CallPhase] == list(PUBLIC_STATES)
