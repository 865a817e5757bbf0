# returns: {"error": "deal 0 has a negative amount", "amounts": [800]}
def check(deal):
    if deal["amount"] < 0:
        raise ValueError(f"deal {deal['id']} has a negative amount")
    return deal["amount"]

result = await crm.list_deals(status="lost")
try:
    amounts = [check(d) for d in result["items"]]
    check({"id": 0, "amount": -1})
except ValueError as e:
    return {"error": str(e), "amounts": amounts}
