# returns: {"unique": 6, "domains": ["analytical.example", "bletchley.example", "eindhoven.example", "mit.example", "navy.example", "stanford.example"]}
seen = set()
domains = {}
for query in ["london", "a", "stanford"]:
    found = await crm.search_contacts(query=query)
    for contact in found["items"]:
        if contact["id"] in seen:
            continue
        seen.add(contact["id"])
        domain = contact["email"].split("@")[1]
        domains[domain] = domains.get(domain, 0) + 1
return {"unique": len(seen), "domains": sorted(domains)}
