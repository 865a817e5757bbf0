"""Which tools a few words may mean, the likeliest first. Pure.

BM25 over three fields: a word counts the more the fewer tools have it, and the more so in a name. How often a
description repeats it does not matter. What does not depend on the query is in an index, so that a query looks at each
word once, and not at each word of each tool.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..protocol.tool_call import ToolInfo

_NAME, _DESCRIPTION, _ARGUMENT = 4.0, 1.0, 0.5
"""What a word weighs, by where it stands."""
_K1, _B = 1.2, 0.75
"""BM25's usual constants: how soon more weight stops to count, and how much long texts are marked down."""
_PART: Final = 0.5
"""What a word counts that is only part of one that is asked for, or the other way round."""
_LEAST_PART: Final = 4
"""Letters that the shorter one then has at least."""
_WORD: Final = re.compile(r"[^\W_]+")
_JOINED: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words in ``listFilesByID2``."""
_EMPTY: Final = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "not", "of", "on", "or"}
    | {"that", "the", "there", "this", "to", "with", "can", "do", "how", "i", "me", "my", "what", "which", "you"}
)
"""Words that say nothing of a tool."""
MAX_QUERY_WORDS: Final = 32


def words(text: str) -> list[str]:
    """The words of a text, small; names are taken apart at their joints, and a plural's s is let go."""
    whole = _WORD.findall(text)
    found = (part.lower() for word in whole for part in (_JOINED.findall(word) if word.isascii() else [word]))
    return [_singular(word) for word in found if word not in _EMPTY]


class ToolIndex:
    """Tools by their words, for any number of queries."""

    def __init__(self, tools: Sequence[ToolInfo]) -> None:
        self.tools: Final = tools
        texts = [_weights(tool) for tool in tools]
        lengths = [sum(text.values()) for text in texts]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._damping = [_K1 * (1 - _B + _B * (length / average)) for length in lengths]
        self._having: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        """Each word → the places of the tools that have it, with what it weighs there."""
        for place, text in enumerate(texts):
            for word, weight in text.items():
                self._having[word].append((place, weight))
        self._long: Final = [word for word in self._having if len(word) >= _LEAST_PART]

    def scores(self, asked: Iterable[str]) -> list[float]:
        """What each tool has of these words; 0 where it has none of them."""
        scores = [0.0] * len(self.tools)
        for word in asked:
            found = self._found(word)
            rarity = math.log(1 + (len(self.tools) - len(found) + 0.5) / (len(found) + 0.5))
            for place, weight in found.items():
                scores[place] += rarity * weight * (_K1 + 1) / (weight + self._damping[place])
        return scores

    def _found(self, word: str) -> dict[int, float]:
        """The places of the tools that have a word, with what they have of it: the word itself, and the best of those
        that it is part of, or has as a part.
        """
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
    """The tools that have anything of the query, with their scores, the best first; by name where those are equal.

    Who asks of the same tools again gives their index.
    """
    index = tools if isinstance(tools, ToolIndex) else ToolIndex(tools)
    asked = list(dict.fromkeys(words(query)))[:MAX_QUERY_WORDS]
    scored = zip(index.tools, index.scores(asked), strict=True)
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0].name))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _weights(tool: ToolInfo) -> Mapping[str, float]:
    """Each word of a tool with what it weighs: once for its name, its description and its arguments."""
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
