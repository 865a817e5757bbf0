# returns: [{"city": "London", "ok": true, "code": null}, {"city": "Atlantis", "ok": false, "code": "NOT_FOUND"}]
cities = ["London", "Atlantis"]
settled = await gather_settled(*[weather.forecast(city=c) for c in cities])
return [{"city": c, "ok": s["ok"], "code": s.get("code")} for c, s in zip(cities, settled)]
