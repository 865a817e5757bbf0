# returns: ["docs/readme.md: 85 chars", "done", "docs/missing.md: NOT_FOUND", "done"]
log = []
for path in ["docs/readme.md", "docs/missing.md"]:
    try:
        text = await files.read_text(path=path)
    except ToolError as error:
        log.append(f"{path}: {error.code}")
    else:
        log.append(f"{path}: {len(text)} chars")
    finally:
        log.append("done")
return log
