"""``kimi_manage_files``: listing, inspecting and deleting files at Kimi."""

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ProviderError, ServiceUnavailableError
from toold.providers import RemoteFile
from toold.providers.simulator import SIMULATOR_KEY
from toold.tools.builtin.vendor.kimi_manage_files import RESERVED_S, expired

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

MANAGE = "kimi_manage_files"


async def uploaded(harness: "Harness", *names: str) -> list[str]:
    """The ids of uploaded files."""
    data = await harness.data("kimi_upload_files", files=[harness.write(name, "x") for name in names])
    return [row["file_id"] for row in data["files"]]


async def test_files_are_listed(harness: "Harness") -> None:
    """The list is one request. It reports the total if not all files are shown."""
    assert (await harness.call(MANAGE, operation="list")).text == "There are no files."
    ids = await uploaded(harness, "a.txt", "b.txt", "c.txt")
    before = harness.request_counts["kimi files"]
    result = await harness.call(MANAGE, operation="list", limit=2)
    assert harness.request_counts["kimi files"] - before == 1
    data = result.structured
    assert isinstance(data, dict)
    assert ([row["file_id"] for row in data["files"]], data["total"]) == (ids[:2], 3)
    assert "1 more; raise limit" in result.text
    assert (await harness.data(MANAGE, operation="list", purpose="batch"))["total"] == 0


async def test_sdk_retries_are_counted(open_harness: "OpenHarness") -> None:
    """``provider_calls`` counts every request that the vendor received, including retries."""
    harness = await open_harness(TOOLD_KIMI_SDK="openai")
    harness.simulator.plan("kimi", "files", "status=503")
    assert (await harness.call(MANAGE, operation="list")).metadata.provider_calls == 2


async def test_file_can_be_inspected_and_deleted(harness: "Harness") -> None:
    """After the deletion, the file is not found."""
    (file_id,) = await uploaded(harness, "a.txt")
    assert (await harness.data(MANAGE, operation="info", file_id=file_id))["name"] == "a.txt"
    assert await harness.data(MANAGE, operation="delete", file_id=file_id) == {"file_id": file_id, "deleted": True}
    for operation in ("info", "delete"):
        error = await harness.fail(MANAGE, operation=operation, file_id=file_id)
        assert isinstance(error, NotFoundError)
        assert "not found" in error.message


async def test_cleanup_deletes_only_without_dry_run(harness: "Harness") -> None:
    """By default the clean-up only lists the files. With ``dry_run`` false it sends one request per file and one for
    the list.
    """
    ids = await uploaded(harness, "a.txt", "b.txt")
    planned = await harness.call(MANAGE, operation="cleanup_expired")
    assert "set it to false to delete" in planned.text
    assert (await harness.data(MANAGE, operation="list"))["total"] == 2
    before = harness.request_counts["kimi files"]
    done = await harness.data(MANAGE, operation="cleanup_expired", dry_run=False, limit=1)
    assert harness.request_counts["kimi files"] - before == 2
    assert (done["matching"], done["deleted"], done["failed"]) == (2, 1, [])
    (left,) = (await harness.data(MANAGE, operation="list"))["files"]
    assert left["file_id"] == ids[1]
    young = await harness.call(MANAGE, operation="cleanup_expired", older_than_days=36_500, dry_run=False)
    assert young.text == "No file is that old."


async def test_cleanups_of_earlier_servers_delete_only_without_dry_run(harness: "Harness") -> None:
    """``cleanup_all`` covers all files, ``cleanup_orphaned`` those that toold did not upload. The answer says that
    nothing was deleted only because ``dry_run`` is true by default.
    """
    (mine,) = await uploaded(harness, "a.txt")
    async with httpx.AsyncClient(verify=False) as http:
        file = {"file": ("b.txt", b"x")}
        address, headers = f"{harness.simulator.kimi_base_url}/files", {"Authorization": f"Bearer {SIMULATOR_KEY}"}
        theirs = (await http.post(address, headers=headers, files=file, data={"purpose": "file-extract"})).json()["id"]
    planned = await harness.call(MANAGE, operation="cleanup_all")
    assert "nothing was deleted, because dry_run is true by default" in planned.text
    assert isinstance(planned.structured, dict)
    assert planned.structured["notice"] in planned.text
    assert {row["file_id"] for row in planned.structured["files"]} == {mine, theirs}
    done = await harness.data(MANAGE, operation="cleanup_orphaned", dry_run=False)
    assert ([row["file_id"] for row in done["files"]], done["deleted"]) == ([theirs], 1)
    assert (await harness.data(MANAGE, operation="cleanup_all", dry_run=False))["deleted"] == 1
    assert (await harness.call(MANAGE, operation="cleanup_all")).text == "There are no files."


async def test_a_cleanup_stops_before_its_deadline(harness: "Harness") -> None:
    """A clean-up whose time runs out answers with what it deleted, and with the number of files that remain."""
    await uploaded(harness, "a.txt", "b.txt")
    result = await harness.client.call(MANAGE, {"operation": "cleanup_all", "dry_run": False}, timeout=RESERVED_S)
    assert isinstance(result.structured, dict)
    assert (result.structured["deleted"], result.structured["matching"]) == (1, 2)
    assert "1 remain; repeat the call" in result.text


async def test_failed_deletion_is_reported(harness: "Harness") -> None:
    """The other files are deleted. If no file can be deleted, the call fails."""
    ids = await uploaded(harness, "a.txt", "b.txt")
    harness.simulator.plan("kimi", "files", "delay=0")  # the list
    harness.simulator.plan("kimi", "files", "status=400")
    result = await harness.call(MANAGE, operation="cleanup_expired", dry_run=False)
    data = result.structured
    assert isinstance(data, dict)
    assert (data["deleted"], [row["file_id"] for row in data["failed"]]) == (1, ids[:1])
    assert ids[0] in result.text
    harness.simulator.plan("kimi", "files", "delay=0")
    harness.simulator.plan("kimi", "files", "status=400")
    assert isinstance(await harness.fail(MANAGE, operation="cleanup_expired", dry_run=False), ProviderError)


def test_expired_files_are_sorted_by_age() -> None:
    """The oldest file comes first. A file without a date never expires."""
    day = 86_400
    result = [RemoteFile(str(at), "", 1, "", at * day) for at in (9, 3, 5)] + [RemoteFile("?", "", 1, "", 0)]
    assert [file.id for file in expired(result, 10 * day, 5)] == ["3", "5"]
    assert [file.id for file in expired(result, 10 * day, 0)] == ["3", "5", "9"]


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "operation is missing; it should be a string"),
    (
        {"operation": "burn"},
        "operation should be 'list', 'info', 'delete', 'cleanup_expired', 'cleanup_all' or 'cleanup_orphaned'",
    ),
    ({"operation": "delete"}, "file_id is missing; delete needs it; get it from list"),
    ({"operation": "info"}, "file_id is missing; info needs it"),
    ({"operation": "info", "file_id": ""}, "file_id should have at least 1 character"),
    ({"operation": "delete", "file_id": ".."}, "The file id is empty"),
    ({"operation": "list", "file_id": "x"}, "list takes no file_id"),
    ({"operation": "cleanup_expired", "file_id": "x"}, "cleanup_expired takes no file_id"),
    ({"operation": "list", "purpose": "fun"}, "purpose should be 'file-extract'"),
    ({"operation": "list", "limit": 0}, "limit should be greater than or equal to 1, not 0"),
    ({"operation": "list", "limit": 1001}, "limit should be less than or equal to 1000, not 1001"),
    ({"operation": "list", "older_than_days": -1}, "older_than_days should be greater than or equal to 0"),
    ({"operation": "list", "dry_run": "no"}, 'dry_run should be true or false, not "no"'),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(MANAGE, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


@pytest.mark.parametrize("operation", ["list", "info", "delete", "cleanup_expired"])
async def test_outage_timeout_and_cancel(harness: "Harness", operation: str) -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    wanted = {"file_id": "f-1"} if operation in {"info", "delete"} else {}
    await harness.check_failures("kimi", "files", MANAGE, operation=operation, **wanted)


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    error = await (await open_harness(KIMI_API_KEY="")).refuse(MANAGE, operation="list")
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
