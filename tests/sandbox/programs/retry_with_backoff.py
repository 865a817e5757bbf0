# returns: {"attempt": 3, "high": 25}
import asyncio

async def with_retry(city, attempts=5):
    delay = 0.01
    for attempt in range(1, attempts + 1):
        try:
            return attempt, await weather.forecast(city=city)
        except ToolError as e:
            if e.code != "RATE_LIMITED" or attempt == attempts:
                raise
            await asyncio.sleep(delay)
            delay *= 2

attempt, forecast = await with_retry("Lima")
return {"attempt": attempt, "high": forecast["days"][0]["high"]}
