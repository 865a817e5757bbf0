# returns: "See GUIDE(guide.md) and API(https://api.example/v1)."
import re

text = await files.read_text(path="docs/readme.md")
return re.sub(r"\[(\w+)\]", lambda m: m.group(1).upper(), text).splitlines()[2]
