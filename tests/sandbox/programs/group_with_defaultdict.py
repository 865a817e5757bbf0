# returns: {"open": [101, 104, 106], "won": [102, 105, 107], "lost": [103]}
from collections import defaultdict

by_status = defaultdict(list)
page = 1
while page:
    result = await crm.list_deals(page=page)
    for deal in result["items"]:
        by_status[deal["status"]].append(deal["id"])
    page = result["next_page"]
return dict(by_status)
