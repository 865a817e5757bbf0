"""The model catalogue: what is known of each model, from ``models.toml``, each with source and date."""
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """placeholder: the providers' room fills this in."""
    id: str
    provider: str
    context_window: int
