"""The pictures: each is drawn if the record has the calls for it, and shows the measured values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from baseline.pictures import (
    NARROW,
    latency_picture,
    layers_picture,
    pictures,
    png,
    run_picture,
    success_picture,
    throughput_picture,
)
from baseline.record import Call, CallTimings, Load, Record

if TYPE_CHECKING:  # importing it takes a second of every worker's collection
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Make = Callable[..., Record]


def texts(figure: Figure) -> set[str]:
    """All texts of a figure."""
    drawn = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        drawn += [text.get_text() for text in (*axes.texts, *axes.get_yticklabels(), axes.title, axes.xaxis.label)]
        drawn.append(axes.get_title(loc="left"))
    return set(drawn)


def one_axes(figure: Figure | None) -> Axes:
    assert figure is not None
    (axes,) = figure.axes
    return axes


@pytest.fixture
def record(make_record: Make, make_call: Callable[..., Call]) -> Record:
    """Two tools, one of which is slower and fails once."""
    reported = CallTimings(daemon_ms=1.5, queue_ms=0.1, tool_ms=1.0, provider_ms=0.5)
    calls = [make_call(iteration=n, latency_ms=2 + n / 10, timings=reported, offset_s=float(n)) for n in range(1, 9)]
    calls += [make_call(tool_name="chat", iteration=n, latency_ms=200.0 + n, timings=reported) for n in range(1, 8)]
    calls.append(make_call(tool_name="chat", iteration=8, status="error", error_code="TIMEOUT"))
    return make_record(calls)


@pytest.fixture
def swept(make_record: Make, make_call: Callable[..., Call]) -> Record:
    """One tool with a concurrency of 1, 4, 8 and 16, whose throughput is flat from 8."""
    calls = [
        make_call(load=Load(concurrency=number), latency_ms=1000.0 / min(number, 8), iteration=1)
        for number in (1, 4, 8, 16)
    ]
    return make_record(calls)


def test_slowest_tool_is_on_top(record: Record) -> None:
    """Latencies are sorted by median, each tool has its name, and no tool is outside the axes."""
    axes = one_axes(latency_picture(record))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["echo", "chat"]
    low, high = axes.get_ylim()
    assert low < 0
    assert high > 1


def test_tools_are_sorted_by_the_drawn_median(make_record: Make, make_call: Callable[..., Call]) -> None:
    """The median of an even number of calls is the mean of the middle two, and tools are sorted by it."""
    latencies = {"even": (1.0, 4.0), "odd": (3.0, 3.0, 3.0)}
    calls = [
        make_call(tool_name=tool, latency_ms=latency, iteration=number)
        for tool, some in latencies.items()
        for number, latency in enumerate(some, start=1)
    ]
    axes = one_axes(latency_picture(make_record(calls)))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["even", "odd"]


def test_layers_add_up_to_the_whole(record: Record) -> None:
    """Each tool's bar adds up to 100 %, with its mean latency next to it."""
    from matplotlib.patches import Rectangle

    axes = one_axes(layers_picture(record))
    ends: dict[float, float] = {}
    for bar in axes.patches:
        assert isinstance(bar, Rectangle)
        middle = round(bar.get_y() + bar.get_height() / 2)
        ends[middle] = max(ends.get(middle, 0.0), bar.get_x() + bar.get_width())
    assert ends == {0: pytest.approx(100), 1: pytest.approx(100)}
    assert {"204", "2.45"} <= {text.get_text() for text in axes.texts}


def test_run_picture_shows_failures(record: Record) -> None:
    """The run picture has one plot per tool, with a point for each success and a mark for each failure."""
    figure = run_picture(record)
    assert figure is not None
    points = {
        axes.get_title(loc="left"): [np.asarray(one.get_offsets()).shape[0] for one in axes.collections]
        for axes in figure.axes
    }
    assert points == {"chat": [7, 1], "echo": [8, 0]}


def test_knee_is_marked(swept: Record) -> None:
    """The knee of the throughput curve is marked with its figures."""
    axes = one_axes(throughput_picture(swept))
    assert [text.get_text() for text in axes.texts] == ["knee at 8: 8/s"]
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [1, 4, 8, 16]


def test_single_concurrency_has_no_throughput_picture(record: Record) -> None:
    """With only one concurrency there is no throughput picture; all others are drawn."""
    assert throughput_picture(record) is None
    assert list(pictures(record)) == ["latency", "layers", "over-the-run", "success"]


def test_success_rates_have_counts(record: Record, make_record: Make) -> None:
    """Only tools with errors are shown, each with its counts, and the lowest rate is on top."""
    failed = [call for call in record.calls if call.status == "error"]
    more = [msgspec.structs.replace(failed[0], tool_name="debug", iteration=n) for n in (1, 2)]
    axes = one_axes(success_picture(make_record([*record.calls, *more])))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["chat", "debug"]
    assert [text.get_text() for text in axes.texts] == ["7 of 8", "0 of 2"]
    assert success_picture(make_record([call for call in record.calls if call.tool_name == "echo"])) is None


def test_a_narrow_chart_is_no_wider_than_a_phone(record: Record) -> None:
    """Its letters keep their size; its texts stay within it."""
    for figure in pictures(record, NARROW).values():
        figure.draw_without_rendering()
        edge = figure.bbox.width
        assert edge == NARROW * figure.dpi
        for axes in figure.axes:
            for text in (axes.xaxis.label, *axes.get_yticklabels(), *axes.texts):
                box = text.get_window_extent()
                assert box.x0 >= -1, text
                assert box.x1 <= edge + 1, text


def test_every_simulated_picture_is_marked(record: Record, swept: Record, make_record: Make) -> None:
    """Every picture of a simulated run is marked, and no picture of a real one."""
    simulated = make_record(record.calls + swept.calls[1:], simulated=True)
    drawn = pictures(simulated)
    assert len(drawn) == 5
    assert all("SIMULATED" in texts(figure) for figure in drawn.values())
    assert not any("SIMULATED" in texts(figure) for figure in pictures(record).values())


def test_record_without_calls_has_no_pictures(make_record: Make) -> None:
    """A run that was interrupted before its first call has no pictures."""
    assert pictures(make_record()) == {}


def test_failures_are_drawn_without_latencies(make_record: Make, make_call: Callable[..., Call]) -> None:
    """If every call failed, only the run and success pictures are drawn."""
    drawn = pictures(make_record([make_call(status="error", error_code="TIMEOUT")]))
    assert set(drawn) == {"over-the-run", "success"}


def test_pictures_are_png(record: Record) -> None:
    """A picture is a PNG of the expected size."""
    figure = success_picture(record)
    assert figure is not None
    content = png(figure)
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG")
    assert width == 1300
    assert height > 150
