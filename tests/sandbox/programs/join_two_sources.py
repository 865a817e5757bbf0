# returns: [{"deal": "Compiler", "contact": "Grace Hopper", "city": "Arlington"}, {"deal": "Types", "contact": "Barbara Liskov", "city": "Boston"}, {"deal": "Note G", "contact": "Ada Lovelace", "city": "London"}]
contacts = {}
page = 1
rows = []
while page is not None:
    batch = await crm.list_deals(status="won", page=page)
    for deal in batch["items"]:
        cid = deal["contact_id"]
        if cid not in contacts:
            contacts[cid] = await crm.get_contact(contact_id=cid)
        rows.append({"deal": deal["title"], "contact": contacts[cid]["name"], "city": contacts[cid]["city"]})
    page = batch["next_page"]
return rows
