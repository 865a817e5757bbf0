# returns: [{"title": "TeX", "amount": 3000}, {"title": "Semaphore", "amount": 2500}, {"title": "Engine", "amount": 1200.5}]
result = await crm.list_deals(status="open")
open_deals = [d for d in result["items"] if d["amount"] > 1000]
open_deals.sort(key=lambda d: d["amount"], reverse=True)
return [{"title": d["title"], "amount": d["amount"]} for d in open_deals]
