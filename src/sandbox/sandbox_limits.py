"""What one program may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Beside its time, which each call names; all settable (docs/limits.md)."""

    cpu_s: float
    """How long the interpreter itself works; what it waits for does not count."""
    memory_bytes: int
    calls: int
    """Of tools, in all."""
