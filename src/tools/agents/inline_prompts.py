"""Prompts of the configuration alone."""

import hashlib

from ..prompt_source import PromptError, PromptQuery, ResolvedPrompt


class InlinePrompts:
    """A ``PromptSource`` for roles whose prompt stands in the configuration, without variables."""

    async def resolve(self, role: PromptQuery) -> ResolvedPrompt:
        """Returns the role's own text.

        Raises:
            PromptError: it has none.
        """
        if role.inline is None:
            raise PromptError(f"the role {role.role} has no prompt; set prompt")
        return ResolvedPrompt(role.inline, "inline", hashlib.sha256(role.inline.encode()).hexdigest()[:12])
