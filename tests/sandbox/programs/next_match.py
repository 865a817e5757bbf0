# returns: {"boston": "Barbara Liskov", "paris": null}
found = await crm.search_contacts(query="l")
boston = next((c for c in found["items"] if c["city"] == "Boston"), None)
paris = next((c for c in found["items"] if c["city"] == "Paris"), None)
return {"boston": boston["name"] if boston else None, "paris": paris}
