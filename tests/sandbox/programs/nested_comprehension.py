# returns: {"logs/app.log": 36, "data/config.json": 11, "docs/readme.md": 10, "data/orders.csv": 6}
paths = await files.list_files()
words = {p: len((await files.read_text(path=p)).split()) for p in paths}
return dict(sorted(words.items(), key=lambda kv: (-kv[1], kv[0])))
