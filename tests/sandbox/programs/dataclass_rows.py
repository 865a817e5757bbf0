# returns: ["Note G: 150", "Types: 4100", "Compiler: 5000"]
from dataclasses import dataclass

@dataclass
class Row:
    title: str
    amount: float

    def label(self):
        return f"{self.title}: {self.amount:.0f}"

result = await crm.list_deals(status="won")
rows = [Row(d["title"], d["amount"]) for d in result["items"]]
return [r.label() for r in sorted(rows, key=lambda r: r.amount)]
