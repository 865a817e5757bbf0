"""The skills on an agent's A2A card, by which other agents and platforms find it."""

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

MAX_SKILLS: Final = 64
"""The most skills of an agent; each is in every card that is sent."""

MAX_SKILL_CHARS: Final = 4000
"""The most characters of a description or an example."""
MAX_WORD_CHARS: Final = 200
"""The most characters of an id, a name or a tag."""
MAX_TAGS: Final = 50
MAX_EXAMPLES: Final = 20

_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SKILL_CHARS)]
_Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD_CHARS)]


class AgentSkill(BaseModel):
    """Something that an agent can do."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    id: _Word
    name: _Word | None = None
    """If None, the id is the name."""
    description: _Text
    tags: Annotated[tuple[_Word, ...], Field(min_length=1, max_length=MAX_TAGS)] = ("agent",)
    examples: Annotated[tuple[_Text, ...], Field(max_length=MAX_EXAMPLES)] = ()
    """Messages to try."""
    extended: bool = False
    """Whether it is only on the extended card, which needs a token."""


def _distinct(skills: tuple[AgentSkill, ...]) -> tuple[AgentSkill, ...]:
    ids = [skill.id for skill in skills]
    for skill_id in ids:
        if ids.count(skill_id) > 1:
            raise PydanticCustomError("skills", "has two skills with the id {id}", {"id": repr(skill_id)})
    return skills


AgentSkills = Annotated[tuple[AgentSkill, ...], Field(max_length=MAX_SKILLS), AfterValidator(_distinct)]
"""The skills of an agent, each with another id."""
