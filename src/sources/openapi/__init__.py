"""REST APIs described by OpenAPI documents: reading documents, and calling operations."""
