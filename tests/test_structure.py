"""The structure of ``src/``: no import cycles, and one place for every module name and every public class name.

The import graph contains every import statement of every module: at module level, below ``TYPE_CHECKING`` and inside
functions. A statement ``from package import name`` depends on

- ``package`` (its ``__init__``), if that binds ``name``: Python looks there first;
- else the module ``package.name``, if there is one;
- else ``package``.

An import of ``package.module`` does not depend on ``package/__init__.py``. Python runs it first, but a package that
imports its own modules is not a cycle that matters: those modules do not use the package's names.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import toold

SOURCE = Path(toold.__file__).parent
REPEATED_BASENAMES = {"__init__", "__main__"}
MAX_LINES = 420


def module_name(path: Path) -> str:
    parts = ("toold", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGES = {module_name(path) for path in SOURCE.rglob("__init__.py")}


@cache  # parsed when a test needs it: every worker imports this module
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module."""
    return {module_name(path): ast.parse(path.read_text(), str(path)) for path in SOURCE.rglob("*.py")}


@cache
def bound_names(package: str) -> set[str]:
    """The names that a package's ``__init__`` binds at its top level."""
    names = set[str]()
    for node in trees()[package].body:
        match node:
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign() | ast.AnnAssign():
                names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return names


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """The statements of a block and of the blocks in it, without the expressions, which are most of a tree."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(block, name, ()):
            yield node
            yield from statements(node)


def imports(module: str) -> Iterator[str]:
    """The modules of ``src/`` that a module imports."""
    package = module if module in PACKAGES else module.rpartition(".")[0]
    for node in statements(trees()[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                bound = base in PACKAGES and base != module and alias.name in bound_names(base)
                yield submodule if submodule in trees() and not bound else base


@cache
def graph() -> dict[str, set[str]]:
    """The modules of ``src/`` that each module imports."""
    return {module: {name for name in imports(module) if name in trees()} - {module} for module in trees()}


def cycles() -> list[list[str]]:
    """The groups of modules that import one another: what remains after removing modules on no cycle, repeatedly."""
    rest = {module: set(imported) for module, imported in graph().items()}
    while True:
        imported = set[str]().union(*rest.values())
        free = {module for module in rest if not rest[module] & rest.keys() or module not in imported}
        if not free:
            break
        rest = {module: rest[module] - free for module in rest.keys() - free}
    return [[module, *sorted(imported)] for module, imported in sorted(rest.items())]


def test_imports_have_no_cycle() -> None:
    assert cycles() == []


def test_the_graph_contains_the_imports() -> None:
    """Relative imports of names, of modules and of packages are resolved."""
    assert "toold.tools.tool_definition" in graph()["toold.tools.tool"]
    assert "toold.tools" in graph()["toold.daemon.dispatch.child_calls"]
    assert "toold.daemon.dispatch.call_outcome" in graph()["toold.daemon.dispatch.call_execution"]


def test_no_module_is_too_long() -> None:
    """A longer one has two topics."""
    lengths = {path: path.read_text().count("\n") for path in SOURCE.rglob("*.py")}
    assert {str(path.relative_to(SOURCE)): lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


def test_module_basenames_are_unique() -> None:
    paths = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        paths[path.stem].append(str(path.relative_to(SOURCE)))
    assert {stem: path for stem, path in paths.items() if len(path) > 1 and stem not in REPEATED_BASENAMES} == {}


def test_public_class_names_are_unique() -> None:
    modules = defaultdict(list)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(module)
    assert {name: module for name, module in modules.items() if len(module) > 1} == {}
