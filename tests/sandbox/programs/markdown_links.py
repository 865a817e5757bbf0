# returns: {"links": [{"text": "guide", "url": "guide.md"}, {"text": "API", "url": "https://api.example/v1"}], "headings": ["Tool", "Install", "Use"]}
import re

text = await files.read_text(path="docs/readme.md")
links = [{"text": t, "url": u} for t, u in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", text)]
headings = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
return {"links": links, "headings": headings}
