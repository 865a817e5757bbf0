# returns: ["10 Feb: Semaphore", "28 Feb: Types", "01 Mar: Engine"]
from datetime import datetime, timedelta

today = datetime(2026, 2, 1)
horizon = today + timedelta(days=30)
soon = []
for status in ("open", "won"):
    result = await crm.list_deals(status=status)
    for deal in result["items"]:
        closes = datetime.strptime(deal["closes"], "%Y-%m-%d")
        if today <= closes <= horizon:
            soon.append((closes, deal["title"]))
return [f"{closes:%d %b}: {title}" for closes, title in sorted(soon)]
