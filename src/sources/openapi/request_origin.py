"""The origin of a URL. A source's secret is sent to one origin only. Pure."""

from urllib.parse import urlsplit


def origin(url: str) -> str:
    """Returns the scheme, host and port of a URL.

    Raises:
        ValueError: the text is not a URL.
    """
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"
