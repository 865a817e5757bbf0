"""REST APIs by their OpenAPI documents: reading them, whatever is wrong with them, and asking the API."""
