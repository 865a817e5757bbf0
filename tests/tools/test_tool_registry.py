"""The registry: names, the listing, and tools from installed packages."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs
from toold.protocol.error_codes import ToolNotFoundError
from toold.tools import Arguments, Tool, ToolContext, ToolRegistry, bind, load_registry, tool

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

OWN = {"challenge", "chat", "consensus", "echo", "listmodels", "provider_capabilities", "status", "version"}
"""Some of the built-in tools; a checkout may have more."""


def make(name: str, description: str = "Do it.") -> Tool:
    async def do(arguments: Arguments, context: ToolContext) -> None: ...

    do.__doc__ = description
    return tool(name, read_only=True, open_world=False)(do)


def test_tools_are_listed_by_name() -> None:
    """The listing does not depend on the order in which the tools were loaded."""
    assert [tool.name for tool in ToolRegistry([make("b"), make("a")]).tools] == ["a", "b"]


def test_a_duplicate_name_is_rejected() -> None:
    """Two tools cannot have the same name."""
    with pytest.raises(ValueError, match="two tools are called 'a'"):
        ToolRegistry([make("a"), make("b"), make("a")])


def test_a_tool_is_found_by_its_name() -> None:
    """``get`` returns the tool itself."""
    a = make("a")
    registry = ToolRegistry([a])
    assert registry.get("a") is a
    assert "a" in registry
    assert "b" not in registry


def test_an_unknown_name_gets_suggestions() -> None:
    """The message and the details of the error contain similar names."""
    with pytest.raises(ToolNotFoundError, match="no tool 'ecoh'; did you mean 'echo'") as caught:
        load_registry().get("ecoh")
    assert caught.value.details == {"suggestions": ["echo"]}


def test_an_unknown_name_without_a_close_match_is_referred_to_list_tools() -> None:
    """The error says how to list all names, or how a known one is configured, and truncates a long name."""
    with pytest.raises(ToolNotFoundError, match=r"no tool 'clink'; it exists once the operator configures a program"):
        load_registry().get("clink")
    with pytest.raises(ToolNotFoundError, match=r"no tool 'z{100}'; list_tools lists all names") as caught:
        load_registry().get("z" * 5000)
    assert caught.value.details == {"suggestions": []}


def test_the_built_in_tools_are_loaded() -> None:
    """The registry loads the decorated functions of all tool files."""
    own = {tool.name for tool in load_registry().tools if tool.source == "toold"}
    assert own >= OWN


def test_only_tools_that_ask_models_are_open_world() -> None:
    """The other tools in ``OWN`` are local; ``status`` and ``version`` are unmetered and answer under full load."""
    tools = [tool for tool in load_registry().tools if tool.name in OWN]
    assert [tool.name for tool in tools if not tool.local] == ["challenge", "chat", "consensus"]
    assert [tool.name for tool in tools if tool.unmetered] == ["status", "version"]


TOOL_FILE = '''
from toold.tools import Arguments, ToolContext, tool


class GreetArguments(Arguments):
    name: str


@tool("{name}", read_only=True, open_world=False)
async def {name}(arguments: GreetArguments, context: ToolContext) -> str:
    """Greet somebody."""
    return f"Hello, {{arguments.name}}!"
'''

DOCUMENTED = Path(__file__).parents[2] / "docs" / "writing-a-tool.md"

LOAD = """
import json, sys
from toold.tools import load_registry
registry = load_registry()
sdks = sorted({"openai", "zhipuai", "zai"} & sys.modules.keys())
print(json.dumps([sdks, len(registry.tools)]))
"""

Load = Callable[[], tuple[dict[str, str], list[str]]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Loads the registry with the distributions in ``tmp_path``: the tools with their sources, and the problems."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def load_() -> tuple[dict[str, str], list[str]]:
        registry = load_registry()
        return {tool.name: tool.source for tool in registry.tools}, list(registry.problems)

    yield load_
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        # A namespace package has no file.
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(place).startswith(str(tmp_path)) for place in places):
            del sys.modules[name]


def installed(directory: Path, package: str, entry_points: str, **modules: str) -> None:
    """Create the files of an installed distribution: its modules and its dist-info directory."""
    for name, source in modules.items():
        (directory / f"{name}.py").write_text(source)
    info = directory / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[toold.tools]\n{entry_points}\n")


@pytest.mark.process
def test_loading_the_tools_imports_no_sdk() -> None:
    """A new process that has loaded all tools has imported no vendor's SDK."""
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True)
    sdks, tools = json.loads(done.stdout)
    assert sdks == []
    assert tools >= len(OWN)


def test_tools_of_an_installed_package_are_loaded(tmp_path: Path, load: Load) -> None:
    """An entry point may name a tool, a module of tools or a list of tools; each tool has the package as its source."""
    installed(
        tmp_path,
        "acme-tools",
        "one = acme_one:greet\nmodule = acme_two\nlist = acme_three:TOOLS",
        acme_one=TOOL_FILE.format(name="greet"),
        acme_two=TOOL_FILE.format(name="wave") + TOOL_FILE.format(name="nod"),
        acme_three=TOOL_FILE.format(name="bow") + "TOOLS = [bow]",
    )
    sources, problems = load()
    assert {name for name, source in sources.items() if source == "acme-tools"} == {"greet", "wave", "nod", "bow"}
    assert problems == []


def test_the_documented_example_is_loaded(tmp_path: Path, load: Load) -> None:
    """The example in docs/writing-a-tool.md works under the documented entry point.

    The test renames the tool, because a file in src/tools/ may already use the name.
    """
    page = DOCUMENTED.read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    entry_point = page.partition('"toold.tools"]\n')[2].partition("\n")[0].strip().replace('"', "")
    installed(tmp_path, "acme-tools", entry_point)
    (tmp_path / "acme_tools").mkdir()
    (tmp_path / "acme_tools" / "wordcount.py").write_text(example.replace('@tool("wordcount"', '@tool("acme_words"'))
    sources, problems = load()
    assert (sources["acme_words"], problems) == ("acme-tools", [])


async def test_the_documented_example_counts_words_and_lines(
    context: "Context", write: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example in docs/writing-a-tool.md returns the number of words and lines of a file."""
    example = DOCUMENTED.read_text().partition("```python\n")[2].partition("```")[0]
    (tmp_path / "documented_wordcount.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    wordcount = importlib.import_module("documented_wordcount").wordcount
    write("LICENSE", "two words\nand three more\n")
    assert await wordcount.function(bind(wordcount, {"path": "LICENSE"}), context) == {"words": 5, "lines": 2}


@pytest.mark.parametrize(
    ("value", "source", "says"),
    [
        ("broken", "raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("broken", "import no_such_module", "No module named 'no_such_module'"),
        ("broken:gone", "", "AttributeError"),
        ("broken", "X = 1", "it contains no tool"),
        ("broken:X", "X = ['word']", "'word' is not a Tool"),
        ("broken:X", "X = 5", "TypeError"),
    ],
)
def test_a_package_that_fails_to_load_is_skipped(
    tmp_path: Path, load: Load, value: str, source: str, says: str
) -> None:
    """The problem is reported and logged with the name of the package; the built-in tools are still loaded."""
    installed(tmp_path, "acme-tools", f"x = {value}", broken=source)
    with capture_logs() as log:
        sources, problems = load()
    assert sources.keys() >= OWN
    assert len(problems) == 1
    assert f"tools of acme-tools ({value}) were skipped" in problems[0]
    assert says in problems[0]
    assert log == [{"event": "tool skipped", "log_level": "warning", "problem": problems[0]}]


def test_a_package_cannot_replace_a_built_in_tool(tmp_path: Path, load: Load) -> None:
    """The package's ``echo`` is skipped; its other tools are loaded."""
    source = TOOL_FILE.format(name="echo") + TOOL_FILE.format(name="wave")
    installed(tmp_path, "acme-tools", "x = acme", acme=source)
    sources, problems = load()
    assert (sources["echo"], sources["wave"]) == ("toold", "acme-tools")
    assert problems == ["tool 'echo' of acme-tools was skipped: toold has a tool with that name"]


def test_repr_shows_the_number_of_tools() -> None:
    """The repr of a registry contains the number of its tools."""
    assert repr(ToolRegistry([make("a")])) == "<ToolRegistry of 1 tools>"
