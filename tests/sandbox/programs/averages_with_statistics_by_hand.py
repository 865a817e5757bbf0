# returns: {"mean": 11.0, "stdev": 1.633}
forecast = await weather.forecast(city="London")
highs = [d["high"] for d in forecast["days"]]
mean = sum(highs) / len(highs)
variance = sum((h - mean) ** 2 for h in highs) / len(highs)
return {"mean": mean, "stdev": round(variance**0.5, 3)}
