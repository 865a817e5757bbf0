"""The labels that clients have ended."""

from toold.daemon.transports.mcp.ended_clients import MAX_ENDED, MAX_PRINCIPALS, EndedClients


def test_a_label_has_ended_for_its_principal_only() -> None:
    """Another principal with the same label goes on."""
    ended = EndedClients()
    ended.add("ada", "x")
    assert ("ada", "x") in ended
    assert ("eve", "x") not in ended
    assert ("ada", "y") not in ended


def test_the_labels_of_a_principal_are_bounded() -> None:
    """Those that ended first are forgotten; the labels of others are kept."""
    ended = EndedClients()
    ended.add("ada", "x")
    for number in range(MAX_ENDED + 1):
        ended.add("eve", str(number))
    assert ("eve", "0") not in ended
    assert ("eve", "1") in ended
    assert ("eve", str(MAX_ENDED)) in ended
    assert ("ada", "x") in ended


def test_the_principals_are_bounded() -> None:
    """The one that has not ended a label for the longest time is forgotten."""
    ended = EndedClients()
    for number in range(MAX_PRINCIPALS):
        ended.add(str(number), "x")
    ended.add("0", "y")
    ended.add("ada", "x")
    assert ("1", "x") not in ended
    assert ("0", "x") in ended
    assert ("ada", "x") in ended
