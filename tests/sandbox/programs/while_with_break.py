# returns: {"target": 104, "pages": 2}
page = 1
pages = 0
target = None
while True:
    result = await crm.list_deals(page=page)
    pages += 1
    for deal in result["items"]:
        if deal["title"].startswith("S"):
            target = deal["id"]
            break
    if target or not result["next_page"]:
        break
    page = result["next_page"]
return {"target": target, "pages": pages}
