"""The words of queries and tools: stop words, stems, synonyms, phrases, and the verbs that name actions. Pure.

The lists have common English and terms of software and business, not the names of particular APIs.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

STOP_WORDS: Final = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "not", "of", "on", "or"}
    | {"that", "the", "there", "this", "to", "with", "can", "do", "does", "did", "how", "i", "me", "my", "we", "our"}
    | {"you", "your", "their", "they", "them", "have", "has", "had", "someone", "something", "please", "want", "need"}
    | {"into", "onto", "was", "were", "been", "what", "which", "when", "where", "will", "would", "should", "could"}
    | {"if", "so", "than", "then", "whether", "while", "about", "us", "am", "any", "some", "these", "those", "via"}
    | {"who", "why", "all", "every", "everything", "anything", "exist", "much", "many", "inside", "one", "two", "that"}
)
"""Words without meaning for tools."""

VAGUE: Final = frozenset({"new", "recent", "latest", "last", "current", "open", "later", "next", "own", "other", "now"})
"""Words that distinguish tools only a little; they count a third."""


class Action(Enum):
    """The action of a tool on its object."""

    CREATE = "create"
    READ = "read"
    LIST = "list"
    UPDATE = "update"
    DELETE = "delete"
    OTHER = "other"
    """Any other change, such as sending or starting something."""


_VERBS: Final[Mapping[Action, str]] = {
    Action.CREATE: "create add make insert register book post upsert generate write upload store",
    Action.READ: "get read show retrieve return fetch view see look display load download check",
    Action.LIST: "list search find query browse lookup",
    Action.UPDATE: "update edit change modify set patch replace rename move adjust switch alter reschedule assign mark",
    Action.DELETE: "delete remove destroy erase drop clear uninstall detach",
    Action.OTHER: "send cancel run start stop pause resume execute invite approve merge close void archive enable "
    "disable publish trigger import export convert attach finalize submit sign verify validate transfer pay capture "
    "refund restart rerun dispatch review connect perform record notify report",
}
_ASKED: Final[Mapping[Action, str]] = {
    Action.CREATE: "issue file give grant save open log leave start schedule request raise draft define introduce "
    "set_up sign_up",
    Action.READ: "status how grab inspect tell describe preview count",
    Action.LIST: "enumerate",
    Action.UPDATE: "reorder correct fix adapt amend configure increase decrease scale reassign",
    Action.DELETE: "discard trash scrap purge unassign unlink unshare revoke",
}
"""Words that are verbs in queries, but mostly nouns in the texts of tools."""
_SYNONYMS: Final = (
    "create add make insert open register set_up",
    "create book schedule",
    "create write",
    "create post publish",
    "create upload",
    "create issue",
    "create put add",
    "create start",
    "delete remove erase destroy",
    "remove detach",
    "update edit change modify patch put set replace",
    "update move switch",
    "update reschedule",
    "update mark",
    "list search find browse",
    "get read show retrieve return fetch view look",
    "get download",
    "cancel stop abort terminate",
    "run execute exec start trigger launch dispatch invoke",
    "rerun restart retry",
    "pause suspend",
    "send deliver",
    "message sms text",
    "attach upload",
    "ask request",
    "complete finish done",
    "move transition",
    "invite add",
    "approve accept",
    "repo repository",
    "pr pull",
    "org organization organisation",
    "config configuration settings preferences",
    "issue ticket bug",
    "user person people member",
    "colleague user member",
    "client customer contact",
    "lead contact",
    "deal opportunity",
    "appointment meeting booking event",
    "free available availability",
    "article post",
    "picture image photo media",
    "folder directory",
    "file content",
    "money payment fund balance",
    "movement transaction",
    "card payment",
    "refund reimburse",
    "dispute chargeback",
    "price cost",
    "promo promotion discount coupon",
    "phone number telephone",
    "history log changelog",
    "right permission role access",
    "secret credential",
    "label tag",
    "link url",
    "info information detail",
    "answer submission response reply",
    "version release",
    "stage status state",
    "ci workflow action",
    "webhook hook",
    "container pod",
    "delete discard trash scrap purge wipe",
    "remove revoke unassign",
    "get grab inspect describe",
    "stop kill end",
    "restore recover undo revert unarchive",
    "copy clone duplicate fork",
    "subscribe follow watch",
    "comment reply respond",
    "share publish",
    "block ban forbid",
    "allow permit enable grant",
    "give grant assign add",
    "comment note remark",
    "company business organization",
    "employee staff teammate colleague collaborator member",
    "customer client account",
    "bill invoice",
    "fee charge",
    "mail email",
    "chat conversation thread",
    "doc document file",
    "environment env",
    "variable var",
    "authentication auth login",
    "password credential",
    "error failure problem",
    "server host node machine",
    "disk volume storage",
    "application app",
    "kind type category",
    "severity priority",
    "deadline due",
    "bug defect issue",
    "difference diff compare",
    "code source",
    "directory dir folder path",
    "owner author creator",
    "notification alert",
    "statistic stat metric analytic",
    "rule policy",
    "limit quota",
    "certificate cert tls ssl",
    "review rating feedback",
    "profile account user",
    "bank payout",
    "withdraw payout transfer",
    "purchase buy order",
    "product item article",
    "sale order opportunity",
    "stock inventory",
    "worker runner",
    "build run pipeline",
    "sprint iteration",
    "query search jql",
    "lead prospect contact",
    "message sms text whatsapp",
    "estimate quote proposal offer",
    "contract agreement document",
    "survey questionnaire",
    "coupon voucher discount",
    "payout withdrawal",
    "subscription membership plan",
    "tax vat",
    "receipt invoice",
    "fraud risk radar",
    "usage meter consumption",
    "merchant seller account",
    "replica scale instance",
    "deployment rollout",
    "autoscaler hpa",
    "ingress route",
    "claim pvc",
    "namespace ns",
    "service svc",
    "cron schedule",
    "batch job",
    "role rbac",
    "evict drain",
    "branch ref",
    "tag ref",
    "commit change push",
    "star favourite favorite like bookmark",
    "gist snippet",
    "webhook callback",
    "milestone deadline",
    "assignee responsible owner",
    "reaction emoji thumb",
    "change history changelog",
    "task story issue",
    "worklog hour time",
    "watcher follower",
    "group team",
    "menu navigation",
    "draft preview",
    "schedule recurring",
    "category topic",
    "transcript transcription",
    "recording audio",
    "availability slot",
    "evidence dispute",
    "portal dashboard",
    "customer buyer",
    "supplier vendor provider",
    "current authenticated",
)
"""Groups of words that may replace each other. A word can be in several groups."""

PHRASES: Final[Mapping[str, str]] = {
    "set up": "set_up",
    "sign up": "create",
    "look up": "find",
    "turn on": "enable",
    "switch on": "enable",
    "turn off": "disable",
    "switch off": "disable",
    "take off": "remove",
    "tick off": "complete",
    "check off": "complete",
    "roll out": "update",
    "money back": "refund",
    "who am i": "current user",
    "merge request": "pull request",
    "thumbs up": "reaction",
    "log in": "authenticate",
    "sign in": "authenticate",
    "time spent": "worklog",
    "kick off": "start",
    "give back": "return",
    "send back": "return",
    "shut down": "stop",
    "back up": "export",
    "get rid of": "delete",
    "hand over": "assign",
    "write down": "create",
}
"""Phrases of queries, and the words that replace them."""
VERBAL: Final[Mapping[str, str]] = {"email": "send", "mail": "send", "text": "send", "ask": "request"}
"""Nouns that are verbs at the beginning of a request, with the corresponding verbs of tools."""
_DERIVING: Final = ("er", "or", "ee", "able", "abl", "ment", "ion", "ation", "al")
"""Endings that make a noun or an adjective of a verb's stem."""
_UNRELATED: Final = frozenset({"custom", "us", "act", "numb", "ord", "pag", "part", "port", "off"})
"""Stems that become an unrelated word with such an ending, as in *customer*."""


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A lower-case word without the endings of plurals and verb forms: ``cancelled`` and ``cancels`` are ``cancel``."""
    if len(word) <= 3 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and any(vowel in rest for vowel in "aeiouy"):
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    if word.endswith("ll"):
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def derived(word: str) -> Iterator[str]:
    """Stems that a stem may be derived from, or that may be derived from it: ``watch`` and ``watcher``."""
    if word in _UNRELATED or len(word) < 3:
        return
    for ending in _DERIVING:
        yield word + ending
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 3 and rest not in _UNRELATED:
            yield rest


def _by_stem(verbs: Mapping[Action, str]) -> Mapping[str, Action]:
    return {stem(word): action for action, all_verbs in verbs.items() for word in all_verbs.split()}


ACTIONS: Final = _by_stem(_VERBS)
"""The action that a verb's stem names in a tool."""
ASKED_ACTIONS: Final = {**ACTIONS, **_by_stem(_ASKED)}
"""The action that a verb's stem names at the beginning of a query."""


def _synonyms() -> Mapping[str, frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for group in _SYNONYMS:
        stems = {stem(word) for word in group.split()}
        for member in stems:
            groups.setdefault(member, set()).update(stems - {member})
    return {member: frozenset(others) for member, others in groups.items()}


SYNONYMS: Final = _synonyms()
"""The synonyms of a stem."""
