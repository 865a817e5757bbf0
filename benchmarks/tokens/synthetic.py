"""Synthetic tools of realistic size: ten services, each with five kinds of records and five operations.

They take about as many tokens per tool in the listing as the built-in tools (docs/code-mode.md has both figures).
"""

from itertools import islice, product
from typing import Any, Final

from toold.protocol.tool_call import Annotations
from toold.tools import JsonSchema, Tool, ToolContext

Schema = dict[str, Any]

_RECORDS: Final = {
    "crm": ("contact", "company", "deal", "pipeline", "segment"),
    "tickets": ("ticket", "queue", "macro", "escalation", "survey"),
    "calendar": ("event", "room", "invitation", "reminder", "holiday"),
    "billing": ("invoice", "payment", "subscription", "coupon", "refund"),
    "files": ("document", "directory", "share", "revision", "label"),
    "repos": ("repository", "branch", "issue", "release", "webhook"),
    "messages": ("channel", "message", "thread", "member", "emoji"),
    "shop": ("product", "order", "shipment", "warehouse", "review"),
    "people": ("employee", "team", "absence", "position", "payslip"),
    "metrics": ("dashboard", "report", "alert", "experiment", "cohort"),
}
_VERBS: Final = ("search", "create", "get", "update", "delete")
SIZES: Final = (30, 100, 250)
"""A few tools per service, a usual setup of several servers, and all tools."""


def synthetic_tools(count: int) -> list[Tool]:
    """The first ``count`` of 250 tools, taken evenly from all services."""
    places = islice(product(range(5), _VERBS, _RECORDS), count)
    return [_tool(service, _RECORDS[service][place], verb) for place, verb, service in places]


async def _nothing(arguments: dict[str, Any], context: ToolContext) -> None:
    """Does nothing; the tools are only listed."""


def _tool(service: str, record: str, verb: str) -> Tool:
    hints = Annotations(
        read_only_hint=verb in {"search", "get"},
        destructive_hint=verb == "delete",
        idempotent_hint=verb != "create",
        open_world_hint=True,
    )
    takes = {"type": "object", "additionalProperties": False, **_ARGUMENTS[verb](record)}
    made = _row(record)
    output = {"type": "array", "items": made} if verb == "search" else None if verb == "delete" else made
    name = f"{service}_{verb}_{record}"
    return Tool(name, _SAYS[verb].format(record=record, service=service), JsonSchema(takes), _nothing, hints,
                source=service, output_schema=output)  # fmt: skip


_SAYS: Final = {
    "search": "Search the {record} records of {service} by text and filters. Returns the best matches first, a page at "
    "a time; give the cursor of a page to get the next one. Archived records are left out unless they are asked for.",
    "create": "Create a {record} in {service} and return it with its new id. Fields that are left out take the "
    "defaults of the account. Fails with a conflict where one with the same external id exists already.",
    "get": "Get one {record} of {service} by its id, with the related records that are named. Use the search first "
    "where only its name is known.",
    "update": "Change fields of a {record} in {service}; those that are not given stay as they are. The version guards "
    "against changes that somebody else made in the meantime.",
    "delete": "Delete a {record} of {service}. It goes to the bin, from which it can be restored for thirty days, "
    "unless it is deleted for good.",
}


def _text(says: str, **more: Any) -> Schema:
    return {"type": "string", "description": says, **more}


def _fields(record: str) -> dict[str, Schema]:
    """The writable fields of a record."""
    return {
        "name": _text(f"The display name of the {record}, unique within its owner's records.", maxLength=200),
        "description": _text(f"What the {record} is about, as Markdown; shown on its page."),
        "status": _text(f"Where the {record} stands.", enum=["draft", "open", "pending", "done", "archived"]),
        "owner_id": _text("The id of the user who answers for it; by default whoever the token belongs to."),
        "priority": {
            "type": "integer",
            "minimum": 1,
            "maximum": 5,
            "description": "1 is the most urgent, 5 the least.",
        },
        "due_at": _text("When it has to be finished, ISO 8601 with a time zone.", format="date-time"),
        "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels, created where they are new."},
        "address": {
            "type": "object",
            "description": "Where it is, if it is anywhere.",
            "properties": {
                "street": _text("Street and number."),
                "city": {"type": "string"},
                "country": _text("ISO 3166, two letters.", minLength=2, maxLength=2),
            },
            "required": ["city"],
        },
    }


def _row(record: str) -> Schema:
    """The schema of a returned record."""
    known = ("name", "status", "owner_id", "due_at", "labels")
    fields = {
        name: {key: value for key, value in _fields(record)[name].items() if key != "description"} for name in known
    }
    return {"type": "object", "properties": {"id": {"type": "string"}, **fields}, "required": ["id", "name", "status"]}


def _search(record: str) -> Schema:
    fields = _fields(record)
    return {
        "properties": {
            "query": _text(f"Words to look for in the name and the description of the {record}."),
            "status": fields["status"],
            "owner_id": _text("Only those of this user."),
            "labels": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only those with all these labels.",
            },
            "updated_after": _text("Only those changed since, ISO 8601 with a time zone.", format="date-time"),
            "updated_before": _text("Only those changed until then, ISO 8601 with a time zone.", format="date-time"),
            "include_archived": {
                "type": "boolean",
                "default": False,
                "description": "Whether archived ones count too.",
            },
            "sort": _text("What comes first.", enum=["relevance", "created", "updated", "name"], default="relevance"),
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 20,
                "description": "Records on a page.",
            },
            "cursor": _text("Of the page before, to get the next one."),
        },
        "required": ["query"],
    }


def _create(record: str) -> Schema:
    external = _text("An id of your own, so that a repeated request makes no second one.")
    return {"properties": {**_fields(record), "external_id": external}, "required": ["name"]}


def _get(record: str) -> Schema:
    related = {"type": "array", "items": {"enum": ["owner", "comments", "history", "attachments"]}}
    return {
        "properties": {
            "id": _text(f"The id of the {record}, as the search returns it."),
            "include": {**related, "description": "Related records that are returned with it."},
            "fields": {"type": "array", "items": {"type": "string"}, "description": "Only these fields; else all."},
            "as_of": _text("As it was then, ISO 8601; else as it is now.", format="date-time"),
        },
        "required": ["id"],
    }


def _update(record: str) -> Schema:
    own = {
        "id": _text(f"The id of the {record}, as the search returns it."),
        "version": {"type": "integer", "description": "The version that was read; the change fails where it is older."},
        "notify": {"type": "boolean", "default": True, "description": "Whether its followers are notified of it."},
    }
    return {"properties": {**own, **_fields(record)}, "required": ["id"]}


def _delete(record: str) -> Schema:
    return {
        "properties": {
            "id": _text(f"The id of the {record}, as the search returns it."),
            "for_good": {"type": "boolean", "default": False, "description": "Whether it skips the bin."},
            "reason": _text("Why, for the history of whoever looks for it later."),
        },
        "required": ["id"],
    }


_ARGUMENTS: Final = {"search": _search, "create": _create, "get": _get, "update": _update, "delete": _delete}
