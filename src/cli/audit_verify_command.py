"""``toold audit verify``: checks the audit chain for changes. Needs no running daemon."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import msgspec

from ..audit import (
    ChainFindings,
    ChainKeyError,
    ChainProblem,
    SupabaseReader,
    SupabaseReadError,
    verify_chains,
    verify_local,
    verify_remote,
)
from ..daemon.persistence.state_directory import DATABASE_FILE, StateError, read_audit_key
from ..protocol.daemon_address import default_state_dir
from ..store import ChainSigner, ChainTrail, StoreError, chain_key, open_archive
from .command_settings import settings_with
from .console_tables import print_table
from .daemon_connection import CommandFailedError
from .shared_store import postgres_archive, shared_store_address
from .status_command import when
from .terminal_output import Styled, say, say_json

SHOWN_PROBLEMS: Final = 20
"""Only the first problems are printed, up to this number; ``--json`` has more."""
SHOWN_GAPS: Final = 10
"""Only the latest gaps are printed, up to this number; ``--json`` has all."""

_MEANING: Final = {
    "began": "start of the chain; earlier calls cannot be verified",
    "begun again": "the chain restarted: the database was removed, replaced or changed",
    "expired": "deleted locally by retention",
    "unsent": "deleted locally by retention before they were sent",
    "refused": "refused by Supabase; stored locally until they expire",
    "dropped": "never written: the disk failed for too long, or the queue was full",
    "bound": "records the position of the other nodes' chains",
    "gap": "the daemon did not shut down cleanly; its last calls may be missing",
    "forgotten": "deleted in Supabase by its retention, which is not signed",
}


class NotAnsweredError(CommandFailedError):
    """Supabase cannot be read: exit code 3."""

    exit_code = 3


@click.command(short_help="Verify that no row was changed.")
@click.option("--remote", is_flag=True, help="Verify the rows in Supabase, with the key in the state directory.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(remote: bool, as_json: bool) -> None:
    """Verify that no row of the audit trail was changed, removed, added or moved since the daemon wrote it.

    Exits with 0 if the chain is intact, 1 if it is broken or cannot be verified, 3 if Supabase does not answer.
    """
    directory = default_state_dir(os.environ)
    try:
        key = read_audit_key(directory)
        address = shared_store_address()
        if address is not None:
            _verify_shared(key, address, remote=remote, as_json=as_json)
        signer = ChainSigner(key)
        findings = (
            _verified_remote(signer, lambda: _trail_in(directory)) if remote else _verified_local(signer, directory)
        )
    except (StateError, StoreError, ChainKeyError) as error:
        raise CommandFailedError(str(error)) from error
    except SupabaseReadError as error:
        raise NotAnsweredError(f"Supabase cannot be read: {error}") from error
    if as_json:
        shown: dict[str, Any] = {"intact": findings.intact, **msgspec.to_builtins(findings)}
        say_json(msgspec.json.encode(shown))
    else:
        _print(findings, where="Supabase" if remote else str(directory / DATABASE_FILE))
    sys.exit(not findings.intact)


def _verify_shared(key: bytes, address: str, *, remote: bool, as_json: bool) -> NoReturn:
    """Verifies the chains of all nodes, prints what was found, and exits."""
    with postgres_archive(address) as archive:
        numbers, place = archive.chains(), archive.place
        differences = None if remote else archive.schema_differences()
        found = {} if remote else verify_chains(key, archive, differences or ())
    if remote:
        place = "Supabase"
        found = {
            number: _verified_remote(ChainSigner(chain_key(key, number)), _trail_of(address, number))
            for number in numbers
        }
    intact = all(findings.intact for findings in found.values())
    if as_json:
        chains = [{"number": number, **msgspec.to_builtins(findings)} for number, findings in found.items()]
        compared = None if remote else differences is not None
        say_json(msgspec.json.encode({"intact": intact, "definitions_compared": compared, "chains": chains}))
    else:
        for number, findings in found.items():
            if number:
                say("")
            _print(findings, where=f"{place}, chain {number}")
        if not remote and differences is None:
            say("definitions of tables and triggers not compared: this user may not create a schema in the database")
    sys.exit(not intact)


def _verified_local(signer: ChainSigner, directory: Path) -> ChainFindings:
    with open_archive(directory / DATABASE_FILE) as archive:
        return verify_local(signer, archive.trail(), archive.chained_rows(), archive.schema_differences())


def _trail_in(directory: Path) -> ChainTrail:
    with open_archive(directory / DATABASE_FILE) as archive:
        return archive.trail()


def _trail_of(address: str, number: int) -> Callable[[], ChainTrail]:
    def trail() -> ChainTrail:
        with postgres_archive(address) as archive:
            return archive.trail(number)

    return trail


def _verified_remote(signer: ChainSigner, trail: Callable[[], ChainTrail]) -> ChainFindings:
    settings = settings_with({})
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None or key is None:
        raise click.UsageError("--remote needs TOOLD_SUPABASE_URL and TOOLD_SUPABASE_SERVICE_ROLE_KEY")

    async def read() -> ChainFindings:
        async with SupabaseReader(url, key) as reader:
            return await verify_remote(signer, trail, reader)

    return asyncio.run(read())


def _print(findings: ChainFindings, *, where: str) -> None:
    if findings.intact:
        say(Styled("intact", "green"), f": {where}, {_checked(findings)}")
    else:
        places = "one place" if findings.broken == 1 else f"{findings.broken} places"
        say(Styled("BROKEN", "red"), f" in {places}: {where}, {_checked(findings)}")
    for problem in findings.problems[:SHOWN_PROBLEMS]:
        say(f"  {_problem_line(problem)}")
    if findings.broken > SHOWN_PROBLEMS:
        say(f"  … and {findings.broken - SHOWN_PROBLEMS} more")
    if findings.older:
        say(f"{findings.older} calls are older than the chain and cannot be verified")
    if findings.waiting:
        say(f"{findings.waiting} calls have not been sent yet")
    if findings.checkpoints:
        say("")
        rows = [
            (kind, str(count.checkpoints), _known(count.calls), _MEANING.get(kind, "-"))
            for kind, count in findings.checkpoints.items()
        ]
        print_table(("CHECKPOINT", "NUMBER", "CALLS", "MEANING"), rows)
    if findings.gaps:
        say("")
        if len(findings.gaps) > SHOWN_GAPS:
            say(f"… {len(findings.gaps) - SHOWN_GAPS} earlier gaps")
        for gap in findings.gaps[-SHOWN_GAPS:]:
            say(f"gap after call {gap.after_seq}, between {when(gap.since)} and {when(gap.until)}")


def _known(calls: int | None) -> str:
    return "unknown" if calls is None else str(calls)


def _checked(findings: ChainFindings) -> str:
    if findings.first_seq is None:
        return "no calls to check"
    return f"{findings.checked} calls from {findings.first_seq} to {findings.last_seq} are unchanged"


def _problem_line(problem: ChainProblem) -> str:
    if problem.first_seq == problem.last_seq == 0:  # no row
        return f"{problem.fault}: {problem.message}".replace("\n", " ")
    place = str(problem.first_seq)
    if problem.last_seq > problem.first_seq:
        place += f" to {problem.last_seq}"
    call = f" (call {problem.call})" if problem.call else ""
    return f"{place}{call}: {problem.fault}: {problem.message}".replace("\n", " ")
