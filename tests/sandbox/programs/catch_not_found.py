# returns: {"found": false, "message": "There is no contact 99."}
try:
    contact = await crm.get_contact(contact_id=99)
except ToolError as e:
    if e.code == "NOT_FOUND":
        return {"found": False, "message": e.message}
    raise
return {"found": True, "contact": contact}
