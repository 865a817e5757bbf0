# returns: {"names": ["Ada Lovelace", "Alan Turing"], "errors": [{"id": 42, "error": "NOT_FOUND: There is no contact 42.", "code": "NOT_FOUND"}]}
errors = []
names = []
for contact_id in [1, 42, 3]:
    try:
        contact = await crm.get_contact(contact_id=contact_id)
        names.append(contact["name"])
    except Exception as e:
        errors.append({"id": contact_id, "error": str(e), "code": getattr(e, "code", None)})
return {"names": names, "errors": errors}
