# returns: {"levels": {"INFO": 2, "ERROR": 3, "WARN": 1}, "components": ["cache", "db"]}
import re
from collections import Counter

log = await files.read_text(path="logs/app.log")
pattern = re.compile(r"^(?P<time>\S+) (?P<level>[A-Z]+) (?P<rest>.*)$", re.MULTILINE)
levels = Counter(m.group("level") for m in pattern.finditer(log))
errors = re.findall(r"ERROR (\w+):", log)
return {"levels": dict(levels), "components": sorted(set(errors))}
