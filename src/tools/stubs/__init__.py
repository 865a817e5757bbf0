"""Tools as typed Python functions, for code that calls them and for whoever writes it. Pure.

Who calls it: ``read_stubs`` and ``execute_code``, by a selection's ``stubs``. What it knows: tools and their JSON
Schemas. What it must never know: the sandbox, sessions, how a call is run.
"""

from .stub_set import StubSet, module_for

__all__ = ["StubSet", "module_for"]
