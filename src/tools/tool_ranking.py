"""Ranks tools by a query of a few words, best match first. Pure.

BM25 over three fields: a word counts more the fewer tools have it, and most in a name. Repetitions within a description
do not count. The index has everything that is independent of the query, so that a query visits each word once.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..protocol.tool_call import ToolInfo

_NAME, _DESCRIPTION, _ARGUMENT = 4.0, 1.0, 0.5
"""The weight of a word by its field."""
_K1, _B = 1.2, 0.75
"""BM25's usual constants: the saturation of weights, and the penalty for long texts."""
_PART: Final = 0.5
"""The weight of a partial match: one word contains the other."""
_LEAST_PART: Final = 4
"""The least length of the shorter word of a partial match."""
_WORD: Final = re.compile(r"[^\W_]+")
_JOINED: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words in ``listFilesByID2``."""
_EMPTY: Final = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "not", "of", "on", "or"}
    | {"that", "the", "there", "this", "to", "with", "can", "do", "how", "i", "me", "my", "what", "which", "you"}
)
"""Words without meaning for tools."""
MAX_QUERY_WORDS: Final = 32


def words(text: str) -> list[str]:
    """The words of a text in lower case; names are split into their words, and a plural s is removed."""
    whole = _WORD.findall(text)
    found = (part.lower() for word in whole for part in (_JOINED.findall(word) if word.isascii() else [word]))
    return [_singular(word) for word in found if word not in _EMPTY]


class ToolIndex:
    """An index of tools by words, for any number of queries."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        self.tools: Final = tools
        texts = [_weights(tool) for tool in tools]
        lengths = [sum(text.values()) for text in texts]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._damping = [_K1 * (1 - _B + _B * (length / average)) for length in lengths]
        self._having: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        """Each word → the indexes of tools that have it, with its weight there."""
        for place, text in enumerate(texts):
            for word, weight in text.items():
                self._having[word].append((place, weight))
        self._long: Final = [word for word in self._having if len(word) >= _LEAST_PART]

    def scores(self, asked: Iterable[str]) -> list[float]:
        """The score of each tool for these words; 0 without a match."""
        scores = [0.0] * len(self.tools)
        for word in asked:
            found = self._found(word)
            rarity = math.log(1 + (len(self.tools) - len(found) + 0.5) / (len(found) + 0.5))
            for place, weight in found.items():
                scores[place] += rarity * weight * (_K1 + 1) / (weight + self._damping[place])
        return scores

    def _found(self, word: str) -> dict[int, float]:
        """The indexes of tools that have a word, with its weight: the word itself, and the best partial match."""
        found = dict(self._having.get(word, ()))
        if len(word) < _LEAST_PART:
            return found
        parts: dict[int, float] = {}
        for other in self._long:
            if (word in other or other in word) and other != word:
                for place, weight in self._having[other]:
                    parts[place] = max(weight, parts.get(place, 0.0))
        for place, weight in parts.items():
            found[place] = found.get(place, 0.0) + _PART * weight
        return found


def rank(query: str, tools: Sequence[ToolInfo] | ToolIndex) -> list[tuple[ToolInfo, float]]:
    """The tools that match the query, with their scores, best first, then by name.

    Callers that query the same tools repeatedly pass an index.
    """
    index = tools if isinstance(tools, ToolIndex) else ToolIndex(tools)
    asked = list(dict.fromkeys(words(query)))[:MAX_QUERY_WORDS]
    scored = zip(index.tools, index.scores(asked), strict=True)
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0].name))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _weights(tool: ToolInfo) -> Mapping[str, float]:
    """Each word of a tool with its weight, counted once per name, description and arguments."""
    weights: defaultdict[str, float] = defaultdict(float)
    arguments = " ".join(_argument_texts(tool.input_schema))
    for weight, text in ((_NAME, tool.name), (_DESCRIPTION, tool.description), (_ARGUMENT, arguments)):
        for word in set(words(text)):
            weights[word] += weight
    return weights


def _argument_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name, argument in properties.items() if isinstance(properties, dict) else ():
        yield name
        if isinstance(argument, dict) and isinstance(argument.get("description"), str):
            yield argument["description"]
