# returns: 7
total = 0
for i, status in enumerate(["open", "won", "lost"], 1):
    result = await crm.list_deals(status=status)
    total += len(result["items"])
    print(f"[{i}/3] {status}: {len(result['items'])} deals")
return total
