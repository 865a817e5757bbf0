"""Vendor-specific tools: Kimi's and GLM's APIs besides chat, and questions about files."""
