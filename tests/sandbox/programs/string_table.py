# returns: "name           |      city\nAda Lovelace   |    London\nAlan Turing    |    London"
found = await crm.search_contacts(query="london")
lines = [f"{'name':<15}|{'city':>10}"]
for c in found["items"]:
    lines.append(f"{c['name']:<15}|{c['city']:>10}")
print("\n".join(lines))
return "\n".join(lines)
