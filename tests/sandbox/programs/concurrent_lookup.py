# returns: ["Engine (Ada Lovelace)", "Semaphore (Edsger Dijkstra)", "TeX (Donald Knuth)"]
import asyncio

async def describe(deal):
    contact = await crm.get_contact(contact_id=deal["contact_id"])
    return f"{deal['title']} ({contact['name']})"

result = await crm.list_deals(status="open")
return await asyncio.gather(*(describe(d) for d in result["items"]))
