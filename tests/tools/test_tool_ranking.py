"""Tool search: which tools a query finds, and in which order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.tool_call import Annotations, ToolInfo
from toold.tools import load_registry
from toold.tools.search_fields import RankedTool, query_words, search_text, words
from toold.tools.search_vocabulary import Action, stem
from toold.tools.tool_ranking import MAX_RANKED, ToolIndex, rank

READS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
WRITES = Annotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
OWN = [RankedTool(tool.info, tool.source) for tool in load_registry().tools]


def ranked(name: str, description: str, /, hints: Annotations = WRITES, **arguments: str) -> RankedTool:
    properties: dict[str, Any] = {argument: {"description": text} for argument, text in arguments.items()}
    return RankedTool(ToolInfo(name, description, {"properties": properties}, hints), "crm")


def found(query: str, *tools: RankedTool) -> list[str]:
    return [info.name for info, _ in rank(query, tools)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("glm_web_search", ["glm", "web", "search"]),
        ("listFilesByID", ["list", "files", "by", "id"]),
        ("HTTPServer2", ["http", "server", "2"]),
        ("Ünï ÄÖ", ["ünï", "äö"]),
        ("", []),
    ],
)
def test_text_is_split_into_words(text: str, parts: list[str]) -> None:
    """Names are split at their word boundaries."""
    assert words(text) == parts


@pytest.mark.parametrize(
    "forms",
    [
        "file files",
        "category categories",
        "branch branches",
        "cancel cancels cancelled canceled cancelling",
        "create creates created creating",
        "search searches searching searched",
        "merge merged merging",
        "status",
        "address addresses",
        "box boxes",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    """Plurals and verb forms are reduced to the same stem."""
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("search the web", "glm_web_search"),
        ("review my code for bugs", "codereview"),
        ("which models are there", "listmodels"),
        ("upload a file to kimi", "kimi_upload_files"),
        ("security audit", "secaudit"),
        ("echo", "echo"),
        ("download", "smart_file_download"),
    ],
)
def test_built_in_tools_are_found(query: str, tool: str) -> None:
    """Everyday queries find the right tool among the first three."""
    assert tool in found(query, *OWN)[:3]


def test_a_match_in_the_name_ranks_above_description_and_arguments() -> None:
    """For the same word, a match in the name ranks first, in the description second and in an argument third."""
    tools = [
        ranked("x", "Does this.", invoice="its number"),
        ranked("y", "Does that. Makes an invoice."),
        ranked("invoice", "Makes it."),
        ranked("z", "Else."),
    ]
    assert found("invoices", *tools) == ["invoice", "y", "x"]


def test_descriptions_of_arguments_do_not_outweigh_a_title() -> None:
    """A tool whose arguments mention the words of the query many times ranks below the tool that does it."""
    texts: Any = {f"field_{n}": "The contact that is created, and who may create it." for n in range(9)}
    tools = [ranked("crm_create-note", "Create note", **texts), ranked("crm_create-contact", "Create contact")]
    assert found("create a contact", *tools)[0] == "crm_create-contact"


def test_a_rare_word_ranks_above_a_common_one() -> None:
    """A word that all tools share does not affect the order."""
    tools = [ranked("a", "github issue list"), ranked("b", "github pull list"), ranked("c", "github list list list")]
    assert found("github issue", *tools)[0] == "a"


@pytest.mark.parametrize("query", ["update location", "update-location", "crm_update-location", "updateLocation"])
def test_an_exact_name_is_first(query: str) -> None:
    """The name, with or without its source, in any spelling, ranks above each better match of the description."""
    tools = [
        ranked("crm_put-place", "Update location, update the location of a location"),
        ranked("crm_update-location-tag", "Update location tag"),
        ranked("crm_update-location", "Change it"),
    ]
    assert found(query, *tools)[0] == "crm_update-location"


def test_an_exact_title_is_first() -> None:
    """A first sentence with the words of the query ranks above longer ones; articles do not matter."""
    tools = [
        ranked("crm_locations_update_tag", "Update the tag of a location"),
        ranked("crm_locations_put", "Update a location."),
        ranked("crm_locations_update", "Location update settings"),
    ]
    assert found("update location", *tools)[0] == "crm_locations_put"


def test_a_short_name_that_matches_as_a_whole_ranks_above_a_longer_one() -> None:
    """The share of the name that matches counts, even if its title has other words."""
    tools = [
        ranked("crm_update-location-tag", "Update tag"),
        ranked("crm_put-location", "Put sub-account, formerly called location"),
    ]
    assert found("change the location", *tools)[0] == "crm_put-location"


def test_the_beginning_of_a_name_is_next() -> None:
    """A name that begins with the query ranks above those that contain its words elsewhere."""
    tools = [ranked("crm_tag-location", "Location tags of a location"), ranked("crm_location-tags-of-users", "Other")]
    assert found("location tags", *tools)[0] == "crm_location-tags-of-users"


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("book an appointment", "Create appointment", "Return appointment"),
        ("reschedule an appointment", "Update appointment", "Delete appointment"),
        ("who are the members", "List users", "Create user"),
        ("move a deal to another stage", "Update opportunity", "Delete opportunity"),
        ("get rid of a tag", "Remove tag", "Add tag"),
        ("merge a PR", "Merge pull request", "List pull requests"),
        ("edit a configmap", "Replace ConfigMap", "Delete ConfigMap"),
        ("watch an issue", "Add a watcher to the issue", "Add a label to the issue"),
        ("log my work", "Add worklog", "Add label"),
    ],
)
def test_other_words_for_the_same_are_found(query: str, right: str, wrong: str) -> None:
    """Synonyms, abbreviations, phrases, derived and joined words match, and the verb decides between two tools."""
    assert found(query, ranked("b", right), ranked("a", wrong))[0] == "b"


@pytest.mark.parametrize(
    ("query", "action"),
    [
        ("create a contact", Action.CREATE),
        ("Creating contacts", Action.CREATE),
        ("which nodes are there", Action.LIST),
        ("is the deployment healthy?", Action.READ),
        ("show the contact", Action.READ),
        ("show all contacts", Action.LIST),
        ("delete it", Action.DELETE),
        ("star a repository", Action.OTHER),
        ("comment on an issue", Action.OTHER),
        ("recent events", Action.LIST),
        ("latest release", Action.READ),
    ],
)
def test_a_query_says_what_to_do(query: str, action: Action) -> None:
    """By its verb or as a question; a query that only names things asks for them."""
    assert query_words(query).action is action


@pytest.mark.parametrize(
    ("tool", "action"),
    [
        (ranked("crm_PostCustomers", "POST /v1/customers"), Action.CREATE),
        (ranked("crm_PostCustomersCustomer", "POST /v1/customers/{customer}"), Action.UPDATE),
        (ranked("crm_PostCustomersCustomer", "Delete it\n\nPOST /v1/customers/{customer}"), Action.DELETE),
        (ranked("crm_contacts", "All of them\n\nGET /contacts"), Action.LIST),
        (ranked("crm_contact", "A contact\n\nGET /contacts/{id}"), Action.READ),
        (ranked("crm_removeUser", "Takes it away"), Action.DELETE),
        (ranked("crm_weather", "The weather", hints=READS), Action.READ),
        (ranked("crm_weather", "The weather"), None),
    ],
)
def test_what_a_tool_does_is_derived(tool: RankedTool, action: Action | None) -> None:
    """From the verb of its title or its name, else from its HTTP method, else from its hints."""
    assert search_text(tool).action is action


def test_deprecated_tools_rank_lower() -> None:
    """Of two tools with the same words, the one that is not deprecated is first."""
    tools = [ranked("crm_a", "List plans. Deprecated."), ranked("crm_b", "List plans. Cheap.")]
    assert found("list plans", *tools) == ["crm_b", "crm_a"]


@given(st.text(max_size=60))
def test_results_are_unique_known_tools_in_order(query: str) -> None:
    """For any query, each tool appears at most once, scores descend, and every score is positive."""
    results = rank(query, OWN_INDEX)
    scores = [score for _, score in results]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    names = [tool.name for tool, _ in results]
    assert len(names) == len(set(names))


OWN_INDEX = ToolIndex(OWN)


def test_an_index_is_reusable() -> None:
    """A query does not change later results, and an index made from an earlier one has the same results."""
    queries = ("search the web", "filed", "websearches", "echo", "search the web")
    expected = [rank(query, OWN) for query in queries]
    assert [rank(query, OWN_INDEX) for query in queries] == expected
    less = ToolIndex(OWN[1:], OWN_INDEX)
    assert [rank(query, ToolIndex(OWN, less)) for query in queries] == expected


def test_the_number_of_results_is_bounded() -> None:
    """A word that all tools have finds as many of them as are compared."""
    assert len(found("contact", *(ranked(f"crm_{n}", "contact") for n in range(MAX_RANKED + 50)))) == MAX_RANKED


def test_a_search_without_tools_is_empty() -> None:
    """A search over an empty list returns an empty list."""
    assert rank("x", []) == []


def test_a_tool_without_words_is_not_found() -> None:
    """A tool whose name and description contain no words matches no query."""
    assert rank("x", [ranked("_", "")]) == []
