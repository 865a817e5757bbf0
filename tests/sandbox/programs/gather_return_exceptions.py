# returns: {"ok": ["London", "Boston"], "failed": {"Atlantis": "NOT_FOUND"}}
import asyncio

cities = ["London", "Atlantis", "Boston"]
results = await asyncio.gather(*(weather.forecast(city=c) for c in cities), return_exceptions=True)
ok = []
failed = {}
for city, result in zip(cities, results):
    if isinstance(result, Exception):
        failed[city] = result.code
    else:
        ok.append(result["city"])
return {"ok": ok, "failed": failed}
