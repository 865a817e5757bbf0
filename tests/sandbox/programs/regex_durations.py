# returns: {"max": 1532, "avg": 788.5}
import re

log = await files.read_text(path="logs/app.log")
durations = [int(ms) for ms in re.findall(r"took (\d+)ms", log)]
return {"max": max(durations), "avg": round(sum(durations) / len(durations), 1)}
