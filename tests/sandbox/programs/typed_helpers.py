# returns: [{"id": 1, "name": "Ada Lovelace"}, {"id": 2, "name": "Grace Hopper"}]
from typing import Any

def pick(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {k: item[k] for k in keys if k in item}

found: dict[str, Any] = await crm.search_contacts(query="a", limit=2)
return [pick(c, "id", "name", "phone") for c in found["items"]]
