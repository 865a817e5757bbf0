"""ZenML: tools that run and await pipelines of a ZenML server, and look up their artifacts (docs/zenml.md).

Used by the daemon's wiring. From `sources/`, this package uses only `json_server.py` and the types of settings. Must
not know agents, sessions or limits on calls.
"""

from .zenml_host import ZenmlHost
from .zenml_settings import ZenmlSettings, ZenmlSettingsError, anchored_zenml, read_zenml

__all__ = ["ZenmlHost", "ZenmlSettings", "ZenmlSettingsError", "anchored_zenml", "read_zenml"]
