"""Decoding of server-sent events, however the bytes are split."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.providers.recorded_vendor import CONTRACTS, recorded_response
from toold.providers import DIALECTS, Completion, OpenProvider, ProviderTerms
from toold.providers.completion_parsing import CompletionAssembly
from toold.providers.event_stream import EventDecoder

STREAMS = [
    (preset, contract["model"], b"".join(recorded_response(case)[1:]))
    for preset, contract in CONTRACTS.items()
    for case in contract["cases"].values()
    if "events" in case and "expect" in case
]


def decoded(*pieces: bytes) -> list[str]:
    decoder = EventDecoder()
    return [*(data for piece in pieces for data in decoder.feed(piece)), *decoder.end()]


def assembled(preset: str, model: str, events: list[str]) -> Completion:
    holder = OpenProvider(preset, ProviderTerms(dialect=DIALECTS[preset]))
    assembly = CompletionAssembly(holder.model(model), cost_in_usage=True)
    for event in events:
        if event != "[DONE]":
            assembly.add(json.loads(event))
    return assembly.completion()


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 4000), max_size=30), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_split_anywhere_gives_the_same_completion(
    stream: tuple[str, str, bytes], cuts: list[int], line_end: bytes
) -> None:
    """Also within a character or a line end, and with any line end."""
    preset, model, body = stream
    text = body.replace(b"\n", line_end)
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    pieces = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    assert assembled(preset, model, decoded(*pieces)) == assembled(preset, model, decoded(body))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))))
def test_data_is_not_changed(texts: list[str]) -> None:
    """Only line feeds and carriage returns end a line: not the other separators that JSON may contain."""
    body = "".join(f"data: {text}\n\n" for text in texts).encode()
    assert decoded(body) == texts


def test_events_follow_the_standard() -> None:
    """Comments and other fields are ignored, several data lines are one text, and a last event may lack its end."""
    body = b"\xef\xbb\xbf: hello\nevent: x\nid: 1\ndata: a\ndata:b\n\ndata\n\nretry: 5\n\n"
    assert decoded(body) == ["a\nb", ""]
    assert decoded(b"data: a\n\ndata: [DONE]") == ["a", "[DONE]"]
    assert decoded(b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n") == ["a", "b"]
