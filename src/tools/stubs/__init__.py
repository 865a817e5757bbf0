"""Tools as typed Python functions, for programs that call them and for their authors. Pure.

Used by ``read_stubs`` and ``execute_code``, as ``ToolsetView.stubs``. Knows tools and their JSON Schemas. Must not
know the sandbox, sessions, or how calls run.
"""

from .stub_set import StubSet, module_for

__all__ = ["StubSet", "module_for"]
