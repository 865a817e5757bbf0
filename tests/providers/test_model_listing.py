"""The models that a vendor lists."""

from typing import Any

import pytest
from toold.providers.completion_parsing import NotUnderstoodError
from toold.providers.model_listing import read_ids


def test_ids_are_read_in_order() -> None:
    """Entries without an id are passed over."""
    assert read_ids({"data": [{"id": "b"}, {"id": "a"}, {}, None]}) == ("b", "a")


@pytest.mark.parametrize("document", [None, [], {}, {"data": {}}])
def test_what_is_no_list_is_not_understood(document: Any) -> None:
    """Nobody takes it for a vendor without models."""
    with pytest.raises(NotUnderstoodError):
        read_ids(document)
