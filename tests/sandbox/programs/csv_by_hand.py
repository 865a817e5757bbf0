# returns: {"APAC": 66.2, "EU": 41.0, "US": 140.0}
text = await files.read_text(path="data/orders.csv")
lines = text.strip().split("\n")
header = lines[0].split(",")
rows = [dict(zip(header, line.split(","))) for line in lines[1:]]
revenue = {}
for row in rows:
    revenue.setdefault(row["region"], 0.0)
    revenue[row["region"]] += int(row["qty"]) * float(row["price"])
return {k: round(v, 2) for k, v in sorted(revenue.items())}
