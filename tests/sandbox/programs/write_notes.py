# returns: [29, 32, 26]
created = []
result = await crm.list_deals(status="open")
for deal in result["items"]:
    note = await crm.create_note(contact_id=deal["contact_id"], text=f"Follow up on {deal['title']}: {deal['amount']:,.2f}")
    created.append(note["chars"])
return created
