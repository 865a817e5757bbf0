"""How the platform API finds the route of a request, and words its refusals."""

import pytest
from toold.daemon.transports.platform import PlatformAnswer, PlatformError, PlatformRequest, PlatformRoute, error_of
from toold.daemon.transports.platform.platform_route import find_route
from toold.protocol.error_codes import InvalidArgumentsError, OverCapacityError


async def answer(_: PlatformRequest) -> PlatformAnswer:
    return PlatformAnswer({})


ROUTES = (
    PlatformRoute("POST", "/api/v1/things/make", answer),
    PlatformRoute("GET", "/api/v1/things/{name}", answer),
    PlatformRoute("DELETE", "/api/v1/things/{name}", answer),
)


def test_route() -> None:
    """A part in braces takes any one part, decoded; a slash at the end means the same path."""
    route, values = find_route(ROUTES, "GET", "/api/v1/things/a%20b/")
    assert (route, values) == (ROUTES[1], {"name": "a b"})
    assert find_route(ROUTES, "POST", "/api/v1/things/make")[0] is ROUTES[0]


def test_wrong_method() -> None:
    """A path that exists answers another method with 405, and lists its methods in the header ``allow``."""
    with pytest.raises(PlatformError, match="accepts DELETE, GET only") as refused:
        find_route(ROUTES, "PUT", "/api/v1/things/a")
    assert (refused.value.status, refused.value.headers) == (405, (("allow", "DELETE, GET"),))


@pytest.mark.parametrize("path", ["/api/v1/thing/a", "/api/v1/things/", "/api/v1/things/a/b", "/api/v1/"])
def test_unknown_path(path: str) -> None:
    """A path that does not exist gets 404, with the path that it resembles or all that exist."""
    with pytest.raises(PlatformError, match="/api/v1/things/") as refused:
        find_route(ROUTES, "GET", path)
    assert refused.value.status == 404


def test_invalid_fields() -> None:
    """Invalid arguments are reported by field, as FastAPI reports them; a wait is the header ``retry-after``."""
    invalid = error_of(InvalidArgumentsError("cpu: bad", details={"fields": {"cpu": "bad"}}))
    assert invalid.detail == [{"loc": ["body", "cpu"], "msg": "bad", "type": "value_error"}]
    busy = error_of(OverCapacityError("Too many.", retry_after_ms=1500))
    assert (invalid.status, busy.status, busy.detail, busy.headers) == (422, 429, "Too many.", (("retry-after", "2"),))
