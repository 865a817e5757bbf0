"""The configured collections, and the access of callers to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError, ToolNotFoundError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import Principal
from ..tools import COLLECTION_PREFIX, KNOWLEDGE_SOURCE, LookupContext
from .collection_folder import FolderReport
from .knowledge_records import Scope
from .knowledge_settings import CollectionSettings


@dataclass(frozen=True, slots=True)
class Collections:
    """The configured collections. A call may use the collection NAME if its toolset has the tool ``knowledge_NAME``.
    Documents that callers add belong to their principal.
    """

    settings: Mapping[str, CollectionSettings]
    reports: Mapping[str, FolderReport | None]
    """The latest report of each collection with a folder; None while it is read for the first time."""

    def usable(self, context: LookupContext) -> list[str]:
        """The collections that the call may use."""
        return [name for name in self.settings if _has(context, f"{COLLECTION_PREFIX}{name}")]

    def chosen(self, names: Sequence[str], context: LookupContext) -> list[str]:
        """The collections with these names; all usable collections if there are no names.

        Raises:
            NotFoundError: a collection is missing, or the call may not use it.
        """
        usable = self.usable(context)
        for name in names:
            if name not in usable:
                hint = did_you_mean(close_names(name, usable, n=1)) or f"there are {', '.join(usable) or 'none'}"
                raise NotFoundError(f"There is no collection {name!r}; {hint}.")
        return list(dict.fromkeys(names)) or usable

    def writable(self, name: str | None, context: LookupContext) -> str:
        """The collection to which documents are added.

        Raises:
            NotFoundError: the collection is missing, or the call may not use it.
            InvalidArgumentsError: several are possible, and none is named.
            PermissionDeniedError: the collection's documents are the files of a folder.
        """
        if name is not None:
            [chosen] = self.chosen([name], context)
            if self.settings[chosen].folder is not None:
                raise PermissionDeniedError(f"The documents of {chosen} are the files of a folder; change those.")
            return chosen
        possible = [each for each in self.usable(context) if self.settings[each].folder is None]
        if len(possible) != 1:
            raise InvalidArgumentsError(
                f"collection: name one of {', '.join(possible)}." if possible else "There is no collection to add to."
            )
        return possible[0]

    def scope(self, name: str, principal: Principal) -> Scope:
        """The documents that this principal sees in a collection."""
        return Scope(name, principal.name if self.settings[name].folder is None else "")

    def notes(self, names: Iterable[str]) -> list[str]:
        """Notes for callers about the state of these collections."""
        notes = [f"{name} is being read for the first time." for name in names if self.reports.get(name, ...) is None]
        for name in names:
            report = self.reports.get(name)
            if report is not None and report.problem is not None:
                notes.append(f"The folder of {name} {report.problem}; its documents are from the last successful scan.")
        return notes


def _has(context: LookupContext, name: str) -> bool:
    try:
        return context.find_tool(name).source == KNOWLEDGE_SOURCE
    except ToolNotFoundError:
        return False
