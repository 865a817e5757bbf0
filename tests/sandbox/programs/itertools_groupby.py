# returns: {"1": ["Lovelace", "Turing"], "2": ["Hopper", "Liskov"], "3": ["Dijkstra", "Knuth"]}
from itertools import groupby

found = await crm.search_contacts(query="")
ordered = sorted(found["items"], key=lambda c: c["company_id"])
return {str(k): [c["name"].split()[-1] for c in g] for k, g in groupby(ordered, key=lambda c: c["company_id"])}
