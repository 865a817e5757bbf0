# returns: {"features": {"beta": false, "limits": [1, 2, 3]}, "name": "demo", "retries": 4}
import json

config = json.loads(await files.read_text(path="data/config.json"))
config["retries"] += 1
config["features"]["beta"] = False
return json.loads(json.dumps(config, sort_keys=True))
