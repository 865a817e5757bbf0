# returns: ["Ada Lovelace", "Alan Turing"]
import asyncio

async def main():
    found = await crm.search_contacts(query="london")
    return [c["name"] for c in found["items"]]

return await main()
