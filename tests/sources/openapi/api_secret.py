"""A secret of the API ``crm``, and the check that no error contains it."""

import json
from typing import Any

import pytest
from toold.protocol.error_codes import CallError

SECRET = "hunter2-hunter2"
BEARER = {"type": "bearer", "env": "CRM_TOKEN"}


async def failure(asking: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await asking
    assert SECRET not in str(caught.value)
    assert SECRET not in json.dumps(caught.value.details)
    return caught.value
