# returns: {"count": 7, "total": 16750.75}
deals = []
page = 1
while page is not None:
    result = await crm.list_deals(page=page)
    deals.extend(result["items"])
    page = result["next_page"]
return {"count": len(deals), "total": sum(d["amount"] for d in deals)}
