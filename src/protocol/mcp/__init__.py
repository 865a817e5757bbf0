"""MCP's messages to calls, and the calls' answers to messages, whichever way the messages travel. Pure."""
