# returns: "247.20"
from decimal import Decimal

text = await files.read_text(path="data/orders.csv")
total = Decimal("0")
for line in text.strip().splitlines()[1:]:
    _, _, qty, price = line.split(",")
    total += int(qty) * Decimal(price)
return str(total)
