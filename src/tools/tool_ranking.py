"""Ranks tools by a query of a few words, best match first. Pure.

There are two stages. The first stage is BM25F: rare words count more, words in a name or title count most, and synonyms
count less than the word itself. The second stage compares the best tools of the first stage: by the share of the query
and of the tool's title that match, and by the action that the query's verb names. Tools whose name equals the query or
begins with it come first.
"""

import heapq
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ..protocol.tool_call import ToolInfo
from .search_fields import Field, QueryWords, RankedTool, SearchText, query_words, search_text, stems
from .search_vocabulary import ACTIONS, SYNONYMS, VAGUE, Action, derived

MAX_RANKED: Final = 200
"""The maximum number of tools that the second stage compares."""

_WEIGHTS: Final[Mapping[Field, float]] = {
    Field.NAME: 1.5,
    Field.TITLE: 3.0,
    Field.PATH: 1.5,
    Field.SOURCE: 1.5,
    Field.DESCRIPTION: 0.7,
    Field.ARGUMENTS: 0.4,
    Field.ARGUMENT_TEXTS: 0.1,
}
"""The weight of a word by its field."""
_B: Final[Mapping[Field, float]] = {
    Field.NAME: 0.5,
    Field.TITLE: 0.5,
    Field.PATH: 0.5,
    Field.SOURCE: 0.0,
    Field.DESCRIPTION: 0.5,
    Field.ARGUMENTS: 0.7,
    Field.ARGUMENT_TEXTS: 0.7,
}
"""The penalty for many words, by field."""
_K1: Final = 1.2
"""The saturation of weights; BM25's usual constant."""
_SYNONYM, _DERIVED, _PREFIX, _COMPOUND = 0.5, 0.6, 0.5, 0.8
"""The weights of other matching words, as shares of the word's own weight."""
_LEAST_PREFIX: Final = 4
"""The minimum length of a common beginning of two words."""
_LEAST_PART: Final = 3
"""The minimum length of the parts of a compound word."""
_VAGUE, _VERB = 0.66, 1.0
"""The factors for vague words and for the query's verb; the action that the verb names is scored separately."""
_COVERED: Final = 0.3
"""The weight of the share of the query that matches."""
_TITLE: Final = 0.8
"""The weight of the share of the title that matches."""
_SURFACE: Final = 0.15
"""The weight of words that match exactly, including their endings."""
_ACTION: Final = 0.35
"""The weight of the action, as a share of the score."""
_ALL: Final = 0.12
"""For tools whose name contains ``all``: the bonus if the query contains it too, otherwise the penalty."""
_DEPRECATED: Final = 0.6
"""The factor of tools that are described as deprecated."""
_EQUAL_NAME, _NAME_PREFIX = 1000.0, 100.0
"""Added to the score, so that such a name ranks above all other matches."""
_COMMON: Final = 0.2
"""A word that a larger share of the tools has is indexed only if it is in a name, title, path or source."""


class ToolIndex:
    """An index of tools by words, for any number of queries. Immutable."""

    def __init__(self, tools: Sequence[RankedTool], earlier: "ToolIndex | None" = None) -> None:
        """The words of tools in an ``earlier`` index are reused."""
        self.tools: Final = [tool.info for tool in tools]
        known = (
            {}
            if earlier is None
            else {id(info): text for info, text in zip(earlier.tools, earlier._texts, strict=True)}
        )
        self._texts: Final[Sequence[SearchText]] = [known.get(id(tool.info)) or search_text(tool) for tool in tools]
        self._postings: Final = _postings(self._texts)
        """Each word → the indexes of the tools that have it, with the word's weight there, from 0 to 1."""
        self._sorted: Final = sorted(self._postings)
        self._compounds: Final = _compounds(self._postings)
        self._names: Final = [_joined(info.name) for info in self.tools]
        self._own_names: Final = [_joined(text.own_name) for text in self._texts]
        self._sentences: Final = [_joined(text.sentence) for text in self._texts]
        self._rarities: Final = {word: self._rarity_of(len(having)) ** 2 for word, having in self._postings.items()}

    def ranked(self, query: str) -> list[tuple[int, float]]:
        """The indexes and scores of the best matches, at most ``MAX_RANKED``."""
        asked = query_words(query)
        expanded = {part: list(self._expanded(part)) for word in asked.stems for part in self._parts(word)}
        scores: defaultdict[int, float] = defaultdict(float)
        rarities: dict[str, float] = {}
        for word, others in expanded.items():
            best: dict[int, float] = {}
            for other, share in others:
                for place, weight in self._postings[other]:
                    value = weight * share
                    if value > best.get(place, 0.0):
                        best[place] = value
            rarity = self._rarity(word) if word in self._postings else self._rarity_of(len(best))
            if word in VAGUE:
                rarity *= _VAGUE
            elif word == asked.verb and asked.action is not Action.OTHER:
                rarity *= _VERB
            rarities[word] = rarity
            for place, value in best.items():
                scores[place] += rarities[word] * value
        joined = _joined(query)
        chosen = heapq.nlargest(MAX_RANKED, scores, key=scores.__getitem__)
        return [(place, self._refined(place, scores[place], asked, expanded, rarities, joined)) for place in chosen]

    def _refined(
        self,
        place: int,
        base: float,
        asked: QueryWords,
        expanded: Mapping[str, Sequence[tuple[str, float]]],
        rarities: Mapping[str, float],
        joined: str,
    ) -> float:
        text = self._texts[place]
        everywhere = text.fields[Field.NAME] | text.fields[Field.PATH] | text.fields[Field.SOURCE] | text.title
        total = covered = 0.0
        for word, others in expanded.items():
            total += rarities[word] ** 2
            covered += rarities[word] ** 2 * max((share for other, share in others if other in everywhere), default=0.0)
        matching = {other for others in expanded.values() for other, _ in others}
        title = max(self._share(matching, text.title), self._share(matching, text.fields[Field.NAME]))
        meaningful = [word for word in asked.surface if word in text.surface]
        score = base * (1 + _COVERED * covered / total) if total else base
        score *= 1 + _TITLE * title
        score *= 1 + _SURFACE * len(meaningful) / max(1, len(asked.surface))
        score *= 1 + _ACTION * _agreement(asked, text) * asked.certainty
        if text.comprehensive:
            score *= 1 + _ALL if "all" in asked.surface else 1 - _ALL
        if text.deprecated:
            score *= _DEPRECATED
        return score + self._named(place, joined)

    def _named(self, place: int, joined: str) -> float:
        """The bonus for a name or a title that equals the query, or for a name that begins with it."""
        names = (self._names[place], self._own_names[place])
        if joined in names or joined == self._sentences[place]:
            return _EQUAL_NAME
        return _NAME_PREFIX if len(joined) >= _LEAST_PREFIX and any(name.startswith(joined) for name in names) else 0.0

    def _share(self, matching: AbstractSet[str], members: AbstractSet[str]) -> float:
        """The matching share of these words, without verbs; rare words count more."""
        total = hit = 0.0
        for word in members:
            if word not in ACTIONS:
                value = self._rarities[word]
                total += value
                if word in matching:
                    hit += value
        return hit / total if total else 0.0

    def _parts(self, word: str) -> Sequence[str]:
        """The word, or its two parts if only these are known: ``configmap``."""
        if word in self._postings or word in SYNONYMS:
            return [word]
        for end in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
            if word[:end] in self._postings and word[end:] in self._postings:
                return [word[:end], word[end:]]
        return [word]

    def _expanded(self, word: str) -> Iterator[tuple[str, float]]:
        """The words of the index that a word of a query stands for, with their weights."""
        known = self._postings
        if word in known:
            yield word, 1.0
        for other in SYNONYMS.get(word, ()):
            if other in known:
                yield other, _SYNONYM
        for other in derived(word):
            if other in known:
                yield other, _DERIVED
        for other in self._compounds.get(word, ()):
            yield other, _COMPOUND
        if word not in known and len(word) >= _LEAST_PREFIX:
            yield from self._beginning(word)

    def _beginning(self, word: str) -> Iterator[tuple[str, float]]:
        """The words that begin with this word, and the words with which this word begins."""
        place = bisect_left(self._sorted, word)
        while place < len(self._sorted) and self._sorted[place].startswith(word):
            yield self._sorted[place], _PREFIX
            place += 1
        for end in range(_LEAST_PREFIX, len(word)):
            if word[:end] in self._postings:
                yield word[:end], _PREFIX

    def _rarity(self, word: str) -> float:
        return self._rarity_of(len(self._postings.get(word, ())))

    def _rarity_of(self, count: int) -> float:
        return math.log(1 + (len(self.tools) - count + 0.5) / (count + 0.5))


def rank(query: str, tools: Sequence[RankedTool] | ToolIndex) -> list[tuple[ToolInfo, float]]:
    """The tools that match the query, with their scores, best first, then by name; at most ``MAX_RANKED``.

    Callers that query the same tools repeatedly pass an index.
    """
    index = tools if isinstance(tools, ToolIndex) else ToolIndex(tools)
    scored = ((index.tools[place], value) for place, value in index.ranked(query))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0].name))


def _postings(texts: Sequence[SearchText]) -> dict[str, list[tuple[int, float]]]:
    average = {field: sum(len(text.fields[field]) for text in texts) / max(1, len(texts)) for field in Field}
    having: defaultdict[str, list[tuple[int, float, bool]]] = defaultdict(list)
    for place, text in enumerate(texts):
        weights: defaultdict[str, float] = defaultdict(float)
        for field, members in text.fields.items():
            if members:
                damping = 1 - _B[field] + _B[field] * len(members) / average[field]
                for word in members:
                    weights[word] += _WEIGHTS[field] / damping
        strong = text.title | text.fields[Field.NAME] | text.fields[Field.PATH] | text.fields[Field.SOURCE]
        for word, weight in weights.items():
            having[word].append((place, weight / (weight + _K1), word in strong))
    most = max(50.0, _COMMON * len(texts))
    return {
        word: [(place, weight) for place, weight, strong in postings if strong or len(postings) <= most]
        for word, postings in having.items()
    }


def _compounds(known: Mapping[str, object]) -> Mapping[str, Sequence[str]]:
    """Each part → the compound words with it, if both parts are known: ``work`` and ``log`` → ``worklog``."""
    compounds: defaultdict[str, list[str]] = defaultdict(list)
    for word in known:
        for end in range(_LEAST_PART, len(word) - _LEAST_PART + 1):
            if word[:end] in known and word[end:] in known:
                compounds[word[:end]].append(word)
                compounds[word[end:]].append(word)
    return compounds


def _agreement(asked: QueryWords, text: SearchText) -> float:
    """From 1 if a tool has the requested action, to -1 if it does something else to the object."""
    wanted, does = asked.action, text.action
    if wanted is None or does is None:
        return 0.0
    reads = (Action.READ, Action.LIST)
    if asked.verb and asked.verb in text.verbs:
        return 1.0
    if wanted is Action.OTHER:
        if does in reads or does is Action.DELETE:
            return -1.0
        noun = asked.verb in text.title or any(other in text.title for other in derived(asked.verb))
        return 1.0 if does is Action.CREATE and noun else 0.0
    if wanted is does:
        return 1.0
    if wanted in reads and does in reads:
        return 0.5 if wanted is Action.READ else 0.0
    return 0.0 if does is Action.OTHER and wanted not in reads else -1.0


def _joined(text: str) -> str:
    """The stems of the words that have a meaning, so that spellings and articles do not matter."""
    return " ".join(stems(text))
