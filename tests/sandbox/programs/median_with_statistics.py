# returns: 5
import statistics

forecast = await weather.forecast(city="Boston")
return statistics.median(d["high"] for d in forecast["days"])
