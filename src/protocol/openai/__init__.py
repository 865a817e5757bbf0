"""OpenAI's chat format on the HTTP port: parses requests and encodes answers and errors. Pure."""
