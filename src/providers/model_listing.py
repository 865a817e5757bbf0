"""The models that a vendor lists for the key in use."""

from typing import Any

from .completion_parsing import NotUnderstoodError
from .vendor_exchange import VendorExchange
from .vendor_transport import ApiRequest


class ModelListing:
    """``GET …/models`` (platform.kimi.ai/docs/api/list-models).

    Zhipu answers the same, but documents it nowhere, and leaves models out that it serves, those with images among
    them: a GLM model that is not listed is not thereby absent.
    """

    def __init__(self, exchange: VendorExchange) -> None:
        self._exchange = exchange

    async def ids(self, *, timeout_s: float) -> tuple[str, ...]:
        """The ids, in the vendor's order.

        Raises:
            CallError: a subclass by what the vendor said.
        """
        return await self._exchange.ask(ApiRequest(method="GET", path="/models"), read_ids, timeout_s=timeout_s)


def read_ids(document: Any) -> tuple[str, ...]:
    """Raises ``NotUnderstoodError`` where it is no list of models."""
    models = document.get("data") if isinstance(document, dict) else None
    if not isinstance(models, list):
        raise NotUnderstoodError("there is no list of models in it")
    return tuple(str(model["id"]) for model in models if isinstance(model, dict) and model.get("id"))
