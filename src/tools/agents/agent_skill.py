"""The skills on an agent's A2A card, by which other agents and platforms find it."""

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

MAX_SKILLS: Final = 64
"""The maximum number of skills of an agent. Every card contains all of them."""

MAX_SKILL_CHARS: Final = 4000
"""The maximum length of a description or an example."""
MAX_WORD_CHARS: Final = 200
"""The maximum length of an id, a name or a tag."""
MAX_TAGS: Final = 50
MAX_EXAMPLES: Final = 20

_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SKILL_CHARS)]
_Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD_CHARS)]


class AgentSkill(BaseModel):
    """A skill of an agent."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    id: _Word
    name: _Word | None = None
    """The id; None: the name."""
    description: _Text
    tags: Annotated[tuple[_Word, ...], Field(min_length=1, max_length=MAX_TAGS)] = ("agent",)
    examples: Annotated[tuple[_Text, ...], Field(max_length=MAX_EXAMPLES)] = ()
    """Example messages."""
    extended: bool = False
    """Whether the skill is only on the extended card, which needs a token."""


def _distinct(skills: tuple[AgentSkill, ...]) -> tuple[AgentSkill, ...]:
    ids = [skill.id for skill in skills]
    for skill_id in ids:
        if ids.count(skill_id) > 1:
            raise PydanticCustomError("skills", "has two skills with the id {id}", {"id": repr(skill_id)})
    return skills


AgentSkills = Annotated[tuple[AgentSkill, ...], Field(max_length=MAX_SKILLS), AfterValidator(_distinct)]
"""The skills of an agent, with unique ids."""
