# returns: {"status": "empty", "total": 0}
found = await crm.search_contacts(query="nobody of this name")
if not found["items"]:
    return {"status": "empty", "total": found["total"]}
return found["items"][0]
