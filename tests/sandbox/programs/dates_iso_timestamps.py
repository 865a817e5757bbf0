# returns: {"seconds": 89999.0, "per_day": {"2026-03-01": 5, "2026-03-02": 1}}
from datetime import datetime

log = await files.read_text(path="logs/app.log")
times = [datetime.fromisoformat(line.split(" ", 1)[0].replace("Z", "+00:00")) for line in log.splitlines()]
span = times[-1] - times[0]
per_day = {}
for t in times:
    day = t.date().isoformat()
    per_day[day] = per_day.get(day, 0) + 1
return {"seconds": span.total_seconds(), "per_day": per_day}
