# returns: ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald"]
import asyncio

ids = [1, 2, 3, 4, 5, 6]
names = []
for start in range(0, len(ids), 2):
    batch = ids[start:start + 2]
    contacts = await asyncio.gather(*[crm.get_contact(contact_id=i) for i in batch])
    names.extend(c["name"].split()[0] for c in contacts)
return names
