"""``toold deploy`` and ``toold undeploy``: start the jobs of deployments."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import click
import msgspec

from .call_arguments import bind, parse_word
from .jobs_command import follow
from .operator_client import platform_request
from .terminal_output import say, say_json


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="FIELD=VALUE…")
@click.option("--wait", is_flag=True, help="Show the job's log until it ends. Ctrl-C leaves the job running.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the job.")
def deploy(words: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Deploy an agent, as a job that continues after a restart of the daemon.

    \b
    toold deploy customer_id=acme agent_name=greeter prompt_ref=greeter
    toold deploy customer_id=acme agent_id=ID registry_url=https://registry.example

    docs/deploy.md describes the fields. With --wait, the exit code is 1 if the job does not complete.
    """
    from ..deployment import DeployArguments

    body = bind("deploy", DeployArguments.model_json_schema(), [parse_word(word) for word in words])
    _begin(platform_request("POST", "/agents/deploy", body), "deploys", wait=wait, as_json=as_json)


@click.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Show the job's log until it ends. Ctrl-C leaves the job running.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the job.")
def undeploy(name: str, wait: bool, as_json: bool) -> None:
    """Start a job that removes the deployed agent NAME and everything that its deployment created."""
    _begin(platform_request("DELETE", f"/agents/{quote(name, safe='')}"), "removes", wait=wait, as_json=as_json)


def _begin(begun: Mapping[str, Any], verb: str, *, wait: bool, as_json: bool) -> None:
    job_id = str(begun["job_id"])
    if wait:
        follow(job_id, as_json=as_json)
    elif as_json:
        say_json(msgspec.json.encode(begun))
    else:
        say(f"Job {job_id} {verb} {begun['service_name']}; `toold jobs logs {job_id}` shows its progress.")
