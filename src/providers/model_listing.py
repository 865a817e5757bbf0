"""The models that a vendor lists for an API key."""

from typing import Any

from .response_values import InvalidResponseError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest


class ModelListing:
    """``GET …/models`` (platform.kimi.ai/docs/api/list-models).

    Zhipu has the same endpoint but does not document it, and does not list all models that it serves, such as those
    with vision. So an unlisted GLM model may be available.
    """

    def __init__(self, exchange: VendorExchange) -> None:
        self._exchange = exchange

    async def ids(self, *, timeout_s: float) -> tuple[str, ...]:
        """Returns the models' ids, in the vendor's order.

        Raises:
            CallError: the vendor failed.
        """
        return await self._exchange.ask(ApiRequest(method="GET", path="/models"), read_ids, timeout_s=timeout_s)


def read_ids(document: Any) -> tuple[str, ...]:
    """Raises ``InvalidResponseError`` if the document is not a list of models."""
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise InvalidResponseError("the list of models is missing")
    return tuple(str(model["id"]) for model in models if isinstance(model, dict) and model.get("id"))
