# returns: {"rows": 5, "best": "2"}
import csv

text = await files.read_text(path="data/orders.csv")
rows = list(csv.DictReader(text.splitlines()))
best = max(rows, key=lambda r: int(r["qty"]) * float(r["price"]))
return {"rows": len(rows), "best": best["order"]}
