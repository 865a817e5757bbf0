# returns: {"city": "Boston", "date": "2026-03-03", "high": 3, "low": -4}
coldest = None
for city in ["London", "Boston", "Eindhoven"]:
    f = await weather.forecast(city=city)
    for day in f["days"]:
        if coldest is None or day["low"] < coldest["low"]:
            coldest = {"city": city, **day}
return coldest
