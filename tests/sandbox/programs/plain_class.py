# returns: {"open": {"count": 3, "amount": 6700.5}, "won": {"count": 3, "amount": 9250.25}, "lost": {"count": 1, "amount": 800}}
class Totals:
    def __init__(self):
        self.count = 0
        self.amount = 0

    def add(self, deal):
        self.count += 1
        self.amount += deal["amount"]

totals = {}
page = 1
while page:
    result = await crm.list_deals(page=page)
    for deal in result["items"]:
        totals.setdefault(deal["status"], Totals()).add(deal)
    page = result["next_page"]
return {status: {"count": t.count, "amount": t.amount} for status, t in totals.items()}
