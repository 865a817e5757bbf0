"""The scripts and styles of the pages, built by ``make ui``."""

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ASSETS_DIRECTORY: Final = Path(__file__).parent / "assets"
MEDIA_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class AssetError(Exception):
    """The assets are missing or incomplete."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file that pages load."""

    url_name: str
    """The name with a hash of the content, so that browsers can cache the file forever."""
    media_type: str
    content: bytes
    compressed: bytes
    """The content, compressed by gzip."""


class Assets:
    """All assets, by ``url_name``."""

    def __init__(self, by_name: dict[str, Asset]) -> None:
        self._by_name = by_name
        self._by_url = {asset.url_name: asset for asset in by_name.values()}

    def url_name(self, name: str) -> str:
        return self._by_name[name].url_name

    def find(self, url_name: str) -> Asset | None:
        return self._by_url.get(url_name)


def load_assets(directory: Path = ASSETS_DIRECTORY) -> Assets:
    """Reads the built assets.

    Raises:
        AssetError: the assets are missing.
    """
    try:
        files = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in MEDIA_TYPES}
    except OSError as error:
        raise AssetError(f"{directory}: {error.strerror}") from None
    if not {"app.js", "app.css"} <= files.keys():
        raise AssetError(f"{directory} lacks app.js or app.css; `make ui` builds them")
    return Assets({name: _asset(Path(name), content) for name, content in files.items()})


def _asset(path: Path, content: bytes) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:12]
    compressed = gzip.compress(content, 9, mtime=0)
    return Asset(f"{path.stem}.{digest}{path.suffix}", MEDIA_TYPES[path.suffix], content, compressed)
