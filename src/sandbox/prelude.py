"""Definitions for every program, in the sandbox's Python; they run before the program.

They add what models use and the engine lacks: exceptions with a ``code``, ``gather`` with ``return_exceptions``, and
``next`` over a generator expression, which the engine evaluates to a list.
"""

from typing import Final

PRELUDE: Final = """\
import asyncio as _asyncio
import csv as _csv

ToolError = _csv.Error
_builtin_getattr, _builtin_hasattr, _builtin_next = getattr, hasattr, next

class _Failure:
    def __init__(self, code, message):
        self.code = code
        self.message = message

def toold_failure(value):
    if isinstance(value, ToolError):
        code, _, message = str(value).partition(': ')
        return _Failure(code, message)
    return value

def getattr(value, name, *default):
    if name == 'code' or name == 'message':
        value = toold_failure(value)
    return _builtin_getattr(value, name, *default)

def hasattr(value, name):
    if name == 'code' or name == 'message':
        value = toold_failure(value)
    return _builtin_hasattr(value, name)

def next(values, *default):
    return _builtin_next(iter(values) if isinstance(values, list) else values, *default)

async def _caught(awaitable):
    try:
        return await awaitable
    except Exception as error:
        return error

async def _settled(awaitable):
    try:
        return {'ok': True, 'value': await awaitable}
    except ToolError as error:
        failure = toold_failure(error)
        return {'ok': False, 'code': failure.code, 'error': failure.message}
    except Exception as error:
        return {'ok': False, 'code': None, 'error': f'{type(error).__name__}: {error}'}

async def toold_gather(*awaitables, return_exceptions=False):
    if return_exceptions:
        awaitables = [_caught(one) for one in awaitables]
    return await _asyncio.gather(*awaitables)

gather = toold_gather

async def gather_settled(*awaitables):
    return await _asyncio.gather(*[_settled(one) for one in awaitables])
"""

DECLARATIONS: Final = """\
from typing import Any

class ToolError(Exception): ...
def toold_failure(value: Any) -> Any: ...
def getattr(value: Any, name: str, *default: Any) -> Any: ...
def hasattr(value: Any, name: str) -> bool: ...
def next(values: Any, *default: Any) -> Any: ...
async def toold_gather(*awaitables: Any, return_exceptions: bool = False) -> list[Any]: ...
async def gather(*awaitables: Any, return_exceptions: bool = False) -> list[Any]: ...
async def gather_settled(*awaitables: Any) -> list[dict[str, Any]]: ...
"""
"""The declarations of the prelude for the type checker, which does not see it."""
