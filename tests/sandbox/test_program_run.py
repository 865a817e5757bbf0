"""The run of one program: its calls, its waiting, and its return value."""

import asyncio
from typing import Any

import pytest
from toold.sandbox import ProgramFailedError, ProgramOutput, ProgramRefusedError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_program_calls_tools_and_returns_a_value(run: Any, recorded_tools: Any) -> None:
    """Tool modules need no import, and printed output is collected."""
    output = ProgramOutput()
    code = "found = await crm.search_contacts(query='boston')\nprint(found['total'])\nreturn found['items'][0]['name']"
    assert await run(code, output=output) == "Barbara Liskov"
    assert recorded_tools.calls == [("crm.search_contacts", {"query": "boston"})]
    assert output.text == "1\n"


async def test_nothing_is_printed_to_the_output_of_the_daemon(run: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """By default the engine would print to stdout."""
    await run("print('hello')")
    assert capfd.readouterr() == ("", "")


async def test_without_return_the_last_expression_is_the_value(run: Any) -> None:
    """If the last line is not an expression, the value is None."""
    assert await run("x = 1\nx + 1") == 2
    assert await run("x = 1") is None


async def test_variables_do_not_outlive_a_run(run: Any) -> None:
    """The next program starts without them, even in the same worker."""
    await run("kept = 1")
    with pytest.raises(ProgramFailedError, match="name 'kept' is not defined"):
        await run("return kept")


async def test_gathered_calls_run_concurrently(run: Any, recorded_tools: Any) -> None:
    """Five calls in one ``asyncio.gather`` run at the same time."""
    most = 0

    async def slow(**_: Any) -> Any:
        nonlocal most
        most = max(most, recorded_tools.going)
        await asyncio.sleep(0)
        return {}

    recorded_tools.get_contact = slow
    await run("import asyncio\nawait asyncio.gather(*[crm.get_contact(contact_id=i) for i in range(5)])")
    assert most == 5


async def test_a_call_that_is_not_awaited_is_not_made(run: Any, recorded_tools: Any) -> None:
    """The end of the run reports an unawaited call that the type check did not find."""
    with pytest.raises(ProgramFailedError, match="line 2 was not awaited and therefore not made"):
        await run("x = 1\nreturn {'found': crm.get_contact(contact_id=1)}")
    assert recorded_tools.calls == []


async def test_gathered_calls_start_in_source_order(run: Any, recorded_tools: Any) -> None:
    """The tool is called in the order of the arguments of ``gather``."""
    await run("await asyncio.gather(*[crm.get_contact(contact_id=n % 6 + 1) for n in range(20)])")
    assert [item["contact_id"] for _, item in recorded_tools.calls] == [n % 6 + 1 for n in range(20)]


async def test_awaiting_one_call_does_not_start_others(run: Any, recorded_tools: Any) -> None:
    """Earlier calls that are not awaited are not started."""
    with pytest.raises(ProgramFailedError, match="line 1 was not awaited and therefore not made"):
        await run(
            "note = crm.create_note(contact_id=1, text='x')\nreturn (await (crm.get_contact(contact_id=2)))['id']"
        )
    assert [name for name, _ in recorded_tools.calls] == ["crm.get_contact"]
    assert await run("deals = crm.list_deals()\nawait crm.list_deals()\nreturn (await deals)['next_page']") == 2


async def test_a_cancelled_awaited_call_is_not_reported_as_unawaited(run: Any, recorded_tools: Any) -> None:
    """A gathered call may fail before another one starts; the program catches the error and ends normally."""
    helper = "async def one(n):\n    return await crm.get_contact(contact_id=n) if n else 1 / n\n"
    both = "try:\n    await asyncio.gather(one(1), one(0))\nexcept ZeroDivisionError:\n    return 'caught'"
    assert await run(helper + both) == "caught"
    assert recorded_tools.calls == []


@pytest.mark.parametrize(
    "returned", ["main()", "[main(), main()]", "{'all': asyncio.gather(main())}", "gather_settled(main())"]
)
async def test_an_unawaited_coroutine_cannot_be_returned(run: Any, recorded_tools: Any, returned: str) -> None:
    """The error says that ``await`` is missing."""
    with pytest.raises(ProgramFailedError, match=r"is a call that was not awaited; write `await` in front of it"):
        await run(f"async def main():\n    return await crm.get_contact(contact_id=1)\nreturn {returned}")
    assert recorded_tools.calls == []


@pytest.mark.parametrize(
    "code",
    ["crm.get_contact(contact_id=1)", "return len(crm.list_deals())", "for x in crm.list_deals():\n    print(x)"],
)
async def test_a_missing_await_is_found_before_the_program_runs(run: Any, recorded_tools: Any, code: str) -> None:
    """The preceding call of the program is not made either."""
    with pytest.raises(ProgramRefusedError, match="line 2: a call is used before it is awaited"):
        await run(f"await crm.create_note(contact_id=1, text='x')\n{code}")
    assert recorded_tools.calls == []


async def test_running_calls_are_cancelled_when_the_program_ends(run: Any, recorded_tools: Any) -> None:
    """Calls end after an error and after a cancellation."""
    with pytest.raises(ProgramFailedError, match="NOT_FOUND"):
        await run("import asyncio\nawait asyncio.gather(weather.never(), crm.get_contact(contact_id=99))")
    assert recorded_tools.going == 0
    task = asyncio.ensure_future(run("await weather.never()"))
    while not recorded_tools.going:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorded_tools.going == 0


async def test_arguments_must_be_named_and_plain_json(run: Any, recorded_tools: Any) -> None:
    """Errors that the type check cannot find are raised in the program, which can catch them."""
    code = "call = getattr(crm, 'create_note')\ntry:\n    await call({})\nexcept TypeError as e:\n    return str(e)"
    assert "takes its arguments by name" in await run(code.format("1, 'x'"))
    assert "create_note['text'] is a bytes" in await run(code.format("contact_id=1, text=b'x'"))
    assert recorded_tools.calls == []


async def test_a_value_that_expands_too_far_is_rejected(run: Any, recorded_tools: Any) -> None:
    """Forty nested lists represent 2**40 values.

    As an argument they raise an error that the program can catch; as the result they fail the program.
    """
    lists = "x = [0]\nfor i in range(40):\n    x = [x, x]\n"
    note = "try:\n    await getattr(crm, 'create_note')(text=x)\nexcept TypeError as e:\n    return str(e)"
    assert "create_note contains more than 1,000,000 values" in await run(lists + note)
    with pytest.raises(ProgramFailedError, match="the returned value contains more than 1,000,000 values"):
        await run(lists + "return x")
    assert recorded_tools.calls == []


async def test_sleep_waits(run: Any) -> None:
    """Both ``time.sleep`` and ``asyncio.sleep`` work; gathered sleeps run concurrently."""
    both = "await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.01))"
    assert await run(f"import asyncio, time\ntime.sleep(0.01)\n{both}\nreturn 1") == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class A:\n    pass\nreturn [A()]", r"the returned value\[0\] is an object of class A"),
        ("return 2 ** 70", "64 bits"),
        ("return {(1, 2): 3}", "a key that is a tuple"),
    ],
)
async def test_a_returned_value_that_is_not_json_is_reported(run: Any, code: str, message: str) -> None:
    """The error gives the path of the value."""
    with pytest.raises(ProgramFailedError, match=message):
        await run(code)
