# returns: {"London": 13, "Boston": 7, "Eindhoven": 12}
import asyncio

cities = ["London", "Boston", "Eindhoven"]
forecasts = await asyncio.gather(*[weather.forecast(city=c) for c in cities])
return {f["city"]: max(day["high"] for day in f["days"]) for f in forecasts}
