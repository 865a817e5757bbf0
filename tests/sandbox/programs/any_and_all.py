# returns: {"any_lost": true, "all_big": true}
result = await crm.list_deals()
items = result["items"]
return {"any_lost": any(d["status"] == "lost" for d in items), "all_big": all(d["amount"] > 500 for d in items)}
