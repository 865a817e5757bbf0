"""One program at work: its calls, what it waits for, and what it returns."""

import asyncio
from typing import Any

import pytest
from toold.sandbox import ProgramFailedError, ProgramOutput, ProgramRefusedError

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_program_calls_tools_and_returns_a_value(run: Any, world: Any) -> None:
    """Without an import; what it prints is collected."""
    output = ProgramOutput()
    code = "found = await crm.search_contacts(query='boston')\nprint(found['total'])\nreturn found['items'][0]['name']"
    assert await run(code, output=output) == "Barbara Liskov"
    assert world.made == [("crm.search_contacts", {"query": "boston"})]
    assert output.text == "1\n"


async def test_nothing_is_printed_to_the_daemons_own_output(run: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Which is the engine's default."""
    await run("print('hello')")
    assert capfd.readouterr() == ("", "")


async def test_without_return_the_last_line_is_the_value(run: Any) -> None:
    """Where it is an expression, as in a notebook; else there is none."""
    assert await run("x = 1\nx + 1") == 2
    assert await run("x = 1") is None


async def test_state_lasts_for_one_run(run: Any) -> None:
    """The next one begins anew, also in the same worker."""
    await run("kept = 1")
    with pytest.raises(ProgramFailedError, match="name 'kept' is not defined"):
        await run("return kept")


async def test_calls_go_on_at_once(run: Any, world: Any) -> None:
    """Those that are gathered."""
    most = 0

    async def slow(**_: Any) -> Any:
        nonlocal most
        most = max(most, world.going)
        await asyncio.sleep(0)
        return {}

    world.get_contact = slow
    await run("import asyncio\nawait asyncio.gather(*[crm.get_contact(contact_id=i) for i in range(5)])")
    assert most == 5


async def test_a_call_that_is_not_awaited_is_not_made(run: Any, world: Any) -> None:
    """Where the type check cannot see it, the end of the run does."""
    with pytest.raises(ProgramFailedError, match="line 2 was not awaited and therefore not made"):
        await run("x = 1\nreturn {'found': crm.get_contact(contact_id=1)}")
    assert world.made == []


async def test_calls_begin_in_the_order_in_which_they_are_written(run: Any, world: Any) -> None:
    """Those that are gathered too."""
    await run("await asyncio.gather(*[crm.get_contact(contact_id=n % 6 + 1) for n in range(20)])")
    assert [made["contact_id"] for _, made in world.made] == [n % 6 + 1 for n in range(20)]


async def test_one_call_that_is_awaited_does_not_begin_others(run: Any, world: Any) -> None:
    """Of those before it that were only written nothing is done."""
    with pytest.raises(ProgramFailedError, match="line 1 was not awaited and therefore not made"):
        await run(
            "note = crm.create_note(contact_id=1, text='x')\nreturn (await (crm.get_contact(contact_id=2)))['id']"
        )
    assert [name for name, _ in world.made] == ["crm.get_contact"]
    assert await run("deals = crm.list_deals()\nawait crm.list_deals()\nreturn (await deals)['next_page']") == 2


async def test_a_call_that_has_its_await_is_not_told_as_forgotten(run: Any, world: Any) -> None:
    """Where another of those it is gathered with fails before it is begun, and the program goes on."""
    helper = "async def one(n):\n    return await crm.get_contact(contact_id=n) if n else 1 / n\n"
    both = "try:\n    await asyncio.gather(one(1), one(0))\nexcept ZeroDivisionError:\n    return 'caught'"
    assert await run(helper + both) == "caught"
    assert world.made == []


@pytest.mark.parametrize(
    "returned", ["main()", "[main(), main()]", "{'all': asyncio.gather(main())}", "gather_settled(main())"]
)
async def test_what_was_not_awaited_is_no_value(run: Any, world: Any, returned: str) -> None:
    """A coroutine of the program's own that it returns."""
    with pytest.raises(ProgramFailedError, match=r"is a call that was not awaited; write `await` in front of it"):
        await run(f"async def main():\n    return await crm.get_contact(contact_id=1)\nreturn {returned}")
    assert world.made == []


@pytest.mark.parametrize(
    "code",
    ["crm.get_contact(contact_id=1)", "return len(crm.list_deals())", "for x in crm.list_deals():\n    print(x)"],
)
async def test_a_forgotten_await_is_found_before_anything_runs(run: Any, world: Any, code: str) -> None:
    """The call before it is not made either."""
    with pytest.raises(ProgramRefusedError, match="line 2: a call is used before it is awaited"):
        await run(f"await crm.create_note(contact_id=1, text='x')\n{code}")
    assert world.made == []


async def test_what_still_goes_on_at_the_end_is_ended(run: Any, world: Any) -> None:
    """An error, a return and a cancellation alike."""
    with pytest.raises(ProgramFailedError, match="NOT_FOUND"):
        await run("import asyncio\nawait asyncio.gather(weather.never(), crm.get_contact(contact_id=99))")
    assert world.going == 0
    task = asyncio.ensure_future(run("await weather.never()"))
    while not world.going:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.going == 0


async def test_arguments_go_by_name_and_are_plain(run: Any, world: Any) -> None:
    """What hides from the type check is an error that the program can catch."""
    code = "call = getattr(crm, 'create_note')\ntry:\n    await call({})\nexcept TypeError as e:\n    return str(e)"
    assert "takes its arguments by name" in await run(code.format("1, 'x'"))
    assert "create_note['text'] is a bytes" in await run(code.format("contact_id=1, text=b'x'"))
    assert world.made == []


async def test_what_stands_for_too_much_is_refused_beside_the_loop(run: Any, world: Any) -> None:
    """Forty lists that stand for 2**40: as an argument, which the program can catch, and as the result."""
    lists = "x = [0]\nfor i in range(40):\n    x = [x, x]\n"
    note = "try:\n    await getattr(crm, 'create_note')(text=x)\nexcept TypeError as e:\n    return str(e)"
    assert "create_note contains more than 1,000,000 values" in await run(lists + note)
    with pytest.raises(ProgramFailedError, match="the returned value contains more than 1,000,000 values"):
        await run(lists + "return x")
    assert world.made == []


async def test_sleeping_is_waiting(run: Any) -> None:
    """In any of its forms; several sleeps at once go on at once."""
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
async def test_a_value_that_is_no_json_is_told(run: Any, code: str, message: str) -> None:
    """With its place."""
    with pytest.raises(ProgramFailedError, match=message):
        await run(code)
