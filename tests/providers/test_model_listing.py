"""Reading the list of models that a vendor returns."""

from typing import Any

import pytest
from toold.providers.model_listing import read_ids
from toold.providers.response_values import InvalidResponseError


def test_ids_are_read_in_order() -> None:
    """Ids are read in order, and entries without an id are skipped."""
    assert read_ids({"data": [{"id": "b"}, {"id": "a"}, {}, None]}) == ("b", "a")


@pytest.mark.parametrize("document", [None, [], {}, {"data": {}}])
def test_document_without_a_list_is_refused(document: Any) -> None:
    """A document without a list raises an error instead of returning no models."""
    with pytest.raises(InvalidResponseError):
        read_ids(document)
