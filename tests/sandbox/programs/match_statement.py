# returns: "?+-"
result = await crm.list_deals()
out = []
for deal in result["items"]:
    match deal["status"]:
        case "won":
            out.append("+")
        case "lost":
            out.append("-")
        case _:
            out.append("?")
return "".join(out)
